// One event loop: a thread, its connections, its counters, and the buffers that they share because a loop does one
// thing at a time. Internal to net: others see Server.
#pragma once

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/net/connection_limits.h"
#include "headgate/net/counters.h"
#include "headgate/net/event_loop.h"
#include "headgate/net/file_descriptor.h"
#include "headgate/net/server.h"
#include "headgate/net/server_options.h"

namespace headgate::net {

class Connection;

// What all loops of a server share.
struct Shared {
  Shared(const ServerOptions& server_options, const base::DisciplinedClock& disciplined_clock)
      : options(server_options),
        clock(disciplined_clock),
        limits(server_options.connections_max, server_options.connections_per_address_max) {}

  const ServerOptions options;
  const base::DisciplinedClock& clock;
  ConnectionLimits limits;
};

class Loop {
 public:
  // Takes a connection that a door accepted to the loop that shall have it.
  using HandOver = std::function<void(FileDescriptor socket, const sockaddr_storage& peer)>;

  explicit Loop(Shared& shared) : shared_(shared), events_(shared.clock.source()) {}
  ~Loop();

  // A listening socket whose connections this loop accepts; those of a socket that no other loop has are handed over.
  // Before Start.
  void AddDoor(FileDescriptor socket, HandOver hand_over);
  void Start();
  void Stop();  // closes whatever is open; returns when the thread has ended

  // From any thread: runs `work` on the loop's thread.
  void Post(std::function<void()> work) { events_.Post(std::move(work)); }

  // On the loop's thread: takes an accepted connection over.
  void Adopt(FileDescriptor socket, const sockaddr_storage& peer, const SessionFactories& factories);
  // On the loop's thread: accepts what already waits, closes the doors, and lets every connection finish.
  void Drain();
  // On the loop's thread: closes what did not finish.
  void CutOff();

  // For connections, on the loop's thread.
  Shared& shared() { return shared_; }
  LoopCounters& counters() { return counters_; }
  bool draining() const { return draining_; }
  std::span<char> read_buffer() { return read_buffer_; }
  std::string& output() { return output_; }
  void ReleaseOutput();  // empties it
  void ResumeAtEndOfTurn(Connection& connection);
  EventLoop& events() { return events_; }
  boost::asio::io_context& io() { return events_.io(); }

  Counters ReadCounters() const { return counters_.Read(); }

 private:
  friend class Connection;  // enters and leaves the lists

  struct Door {
    boost::asio::posix::stream_descriptor socket;
    HandOver hand_over;
  };
  enum class AcceptResult : uint8_t { kNoneLeft, kTurnOver, kNoRoom };

  boost::asio::awaitable<void> Accept(Door& door);
  AcceptResult AcceptWaiting(Door& door);
  boost::asio::awaitable<void> Tick();
  void ResumeWoken();

  Shared& shared_;
  LoopCounters counters_;
  std::array<char, 64 * 1024> read_buffer_;
  std::string output_;
  std::vector<std::unique_ptr<Door>> doors_;
  Connection* connections_ = nullptr;  // intrusive list of those that are open
  std::vector<Connection*> woken_;     // those that wait no longer for what was decided elsewhere
  bool draining_ = false;
  // Behind the others, so that it goes before them: what it destroys still uses them.
  EventLoop events_;
  EventLoop::Hook resume_{events_, [this] { ResumeWoken(); }};
  std::thread thread_;
};

}  // namespace headgate::net
