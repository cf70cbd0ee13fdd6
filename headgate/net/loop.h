// One event loop: a thread, its connections, its counters, and the buffers that they share because
// a loop does one thing at a time. Internal to net: others see Server.
#pragma once

#include <array>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/net/acceptor.h"
#include "headgate/net/connection_limits.h"
#include "headgate/net/counters.h"
#include "headgate/net/event_loop.h"
#include "headgate/net/file_descriptor.h"
#include "headgate/net/server.h"
#include "headgate/net/server_options.h"

namespace headgate::net {

class Connection;

class Loop;

// Shared by all loops of a server.
struct Shared {
  Shared(const ServerOptions& server_options, const base::DisciplinedClock& disciplined_clock,
         SpareFiles& spares);

  const ServerOptions options;
  const base::DisciplinedClock& clock;
  SpareFiles& spare_files;
  ConnectionLimits limits;
  std::vector<std::unique_ptr<Loop>> loops;  // complete before any starts
};

// An address as one loop sees it.
struct Listener {
  SessionChooser choose_session;
  std::shared_ptr<const TlsContext> tls;  // null: plain
  ConnectionLimits& limits;
  bool has_reserved_places = false;
};

class Loop {
 public:
  explicit Loop(Shared& shared) : shared_(shared), events_(shared.clock.source()) {}
  ~Loop();

  // A listening socket whose connections this loop accepts; those of a socket that no other loop
  // has are handed over. Before Start. `spares_kept`: see SpareFiles.
  void AddAcceptor(FileDescriptor socket, size_t spares_kept, Acceptor::HandOver hand_over);
  void Start();
  void Stop();  // closes whatever is open; returns when the thread has ended

  // From any thread: runs `work` on the loop's thread.
  void Post(std::function<void()> work) { events_.Post(std::move(work)); }

  // On the loop's thread: takes an accepted connection over.
  void Adopt(FileDescriptor socket, const sockaddr_storage& peer, AcceptedWith with,
             const Listener& listener);
  // On the loop's thread: accepts what already waits, stops listening, and lets every connection
  // finish.
  void Drain();
  // On the loop's thread: closes what did not finish.
  void CutOff();

  // For acceptors, on the loop's thread. Whether a refused connection was cut off since the last
  // call; its descriptor is closed at the end of the turn.
  bool TakeMadeWay() { return std::exchange(made_way_, false); }
  // Cuts off those that wait to hear why they are refused: they hold the spare descriptors.
  void MakeWayForAll();

  // For connections, on the loop's thread.
  Shared& shared() { return shared_; }
  LoopCounters& counters() { return counters_; }
  bool draining() const { return draining_; }
  std::span<char> read_buffer() { return read_buffer_; }
  std::string& output() { return output_; }
  void ReleaseOutput();  // empties it
  void ResumeAtEndOfTurn(Connection& connection);
  // Destroys a closed connection at the end of the turn.
  void Bury(Connection& connection);
  // A connection's buffers hold `now_held` bytes in place of `held`.
  void OnBuffersChanged(size_t held, size_t now_held);
  // Before a connection reads: closes others if the buffers of all loops have exceeded their budget
  // meanwhile.
  void BoundBuffers() {
    if (shed_due_) ShedBuffers();
  }
  EventLoop& events() { return events_; }
  boost::asio::io_context& io() { return events_.io(); }

  Counters ReadCounters() const { return counters_.Read(); }
  // From any thread.
  uint64_t buffer_bytes() const { return counters_.buffer_bytes.value(); }

 private:
  friend class Connection;  // enters and leaves the lists

  boost::asio::awaitable<void> Tick();
  void ResumeWoken();
  void DestroyClosed();
  void Refuse(FileDescriptor socket, const sockaddr_storage& peer, const Listener& listener);
  void MakeWayForRefusal();
  void ShedBuffers();

  Shared& shared_;
  LoopCounters counters_;
  std::array<char, 64 * 1024> read_buffer_;
  std::string output_;
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  Connection* connections_ = nullptr;  // intrusive list of all; the loop owns them
  std::vector<Connection*> closed_;    // those to destroy at the end of the turn
  std::vector<Connection*> woken_;     // those whose session is asked again at the end of the turn
  std::vector<Connection*> refused_;   // those that wait to be told why, oldest first
  bool made_way_ = false;     // one of them was cut off; its descriptor is closed after this turn
  size_t buffer_growth_ = 0;  // since the buffers of all loops were last summed
  bool shed_due_ = false;     // they are to be summed before anything else is read
  bool draining_ = false;
  // Behind the others, so that it goes before them: what it destroys still uses them.
  EventLoop events_;
  EventLoop::Hook resume_{events_, [this] { ResumeWoken(); }};
  EventLoop::Hook bury_{events_, [this] { DestroyClosed(); }};
  EventLoop::Hook shed_{events_, [this] { ShedBuffers(); }};
  std::thread thread_;
};

}  // namespace headgate::net
