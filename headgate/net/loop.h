// One event loop: a thread, its connections, its counters, and the buffers that the connections can
// share because a loop does one thing at a time. Internal to net: other folders use Server.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/base/monotonic_time.h"
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
class ProxiedArrival;

// Shared by all loops of a server.
struct Shared {
  Shared(const ServerOptions& server_options, const base::DisciplinedClock& disciplined_clock,
         SpareFiles& spares);

  const ServerOptions options;
  const base::DisciplinedClock& clock;
  SpareFiles& spare_files;
  ConnectionLimits limits;
  // Counts the connections that wait for their PROXY header, so that a drain can wait for them.
  ConnectionLimits arriving{UINT32_MAX, 0};
  std::vector<std::unique_ptr<Loop>> loops;  // complete before any loop starts
};

// The settings of an address, for one loop.
struct Listener {
  SessionChooser choose_session;
  std::shared_ptr<const TlsServer> tls;  // null: plain
  // The TLS context of the next connection; null: plain.
  std::shared_ptr<const TlsContext> tls_context() const {
    return tls == nullptr ? nullptr : tls->current();
  }
  ProxyTrust proxies;
  ConnectionLimits& limits;
  bool has_reserved_places = false;
};

enum class DrainKind : uint8_t {
  kForGood,      // connections that wait are still accepted, and idle ones close
  kToSuccessor,  // another process accepts on the same sockets; idle connections stay
};

class Loop {
 public:
  explicit Loop(Shared& shared);
  ~Loop();

  // Adds a listening socket whose connections this loop accepts. If only this loop has the socket,
  // `hand_over` distributes its connections. Call it before Start. `spares_kept`: see SpareFiles.
  void AddAcceptor(FileDescriptor socket, size_t spares_kept, Acceptor::HandOver hand_over);
  void Start();
  void Stop();  // closes everything that is open; returns when the thread has ended

  // Callable from any thread: runs `work` on the loop's thread.
  void Post(std::function<void()> work) { events_.Post(std::move(work)); }

  // On the loop's thread: takes over an accepted connection.
  void Arrive(FileDescriptor socket, const sockaddr_storage& address, AcceptedWith with,
              const Listener& listener);
  // On the loop's thread: stops listening, and lets every connection finish.
  void Drain(DrainKind kind);
  // On the loop's thread: closes the connections that have not finished.
  void CutOff();

  // For acceptors, on the loop's thread: whether a refused connection was cut off since the last
  // call. Its descriptor is closed at the end of the turn.
  bool TakeMadeWay() { return std::exchange(made_way_, false); }
  // Cuts off the refused connections that still wait for their reason: they hold spare descriptors.
  void MakeWayForAll();

  // For arrivals behind proxies, on the loop's thread: serves a connection whose client is known,
  void Adopt(FileDescriptor socket, const Peer& peer, const Listener& listener);
  // and hands the ownership of an arrival back.
  std::unique_ptr<ProxiedArrival> Forget(ProxiedArrival& arrival);

  // For connections, on the loop's thread:
  Shared& shared() { return shared_; }
  LoopCounters& counters() { return counters_; }
  bool draining() const { return draining_; }
  // Whether idle connections close.
  bool closes_idle() const { return draining_ && !has_successor_; }
  std::span<char> read_buffer() { return read_buffer_; }
  std::string& output() { return output_; }
  void ReleaseOutput();  // empties the output
  void ResumeAtEndOfTurn(Connection& connection);
  // Destroys a closed connection at the end of the turn.
  void Bury(Connection& connection);
  // A connection's buffers now hold `now_held` bytes instead of `held`.
  void OnBuffersChanged(size_t held, size_t now_held);
  // Called before a connection reads: closes connections if the buffers of all loops have meanwhile
  // exceeded their budget.
  void BoundBuffers() {
    if (shed_due_) ShedBuffers();
  }
  EventLoop& events() { return events_; }

  Counters ReadCounters() const { return counters_.Read(); }
  // Callable from any thread.
  uint64_t buffer_bytes() const { return counters_.buffer_bytes.value(); }

 private:
  friend class Connection;  // adds itself to the lists and removes itself

  void Tick();
  void ResumeWoken();
  void DestroyClosed();
  void Refuse(FileDescriptor socket, const Peer& peer, const Listener& listener);
  void AwaitProxyHeader(FileDescriptor socket, const Peer& proxy, const Listener& listener);
  // Closes an arrival whose PROXY header did not come in time, or because too many arrivals wait
  // for theirs.
  void GiveUp(ProxiedArrival& arrival);
  void MakeWayForRefusal();
  void ShedBuffers();

  Shared& shared_;
  LoopCounters counters_;
  std::array<char, 64 * 1024> read_buffer_;
  std::string output_;
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  Connection* connections_ = nullptr;  // intrusive list of all connections; the loop owns them
  std::vector<Connection*> closed_;    // connections to destroy at the end of the turn
  // Connections whose session is called again at the end of the turn.
  std::vector<Connection*> woken_;
  // Connections that wait for the reason of their refusal, oldest first.
  std::vector<Connection*> refused_;
  // Connections that wait for their PROXY header, oldest first.
  std::vector<std::unique_ptr<ProxiedArrival>> arrivals_;
  // A refused connection was cut off; its descriptor is closed after this turn.
  bool made_way_ = false;
  size_t buffer_growth_ = 0;  // since the buffers of all loops were last summed
  bool shed_due_ = false;     // the buffers must be summed before the next read
  bool draining_ = false;
  bool has_successor_ = false;
  base::MonotonicTime tick_due_{0};
  bool passed_over_ = false;  // the last tick was late, and ended no connection
  // Declared last so that it is destroyed first: its destructor still uses the members above.
  EventLoop events_;
  Timer tick_{events_, [this] { Tick(); }};
  EventLoop::Hook resume_{events_, [this] { ResumeWoken(); }};
  EventLoop::Hook bury_{events_, [this] { DestroyClosed(); }};
  EventLoop::Hook shed_{events_, [this] { ShedBuffers(); }};
  std::thread thread_;
};

}  // namespace headgate::net
