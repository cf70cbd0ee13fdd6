#include "headgate/net/server.h"

#include <sys/socket.h>

#include <algorithm>
#include <latch>
#include <utility>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/base/monotonic_time.h"
#include "headgate/net/listen.h"
#include "headgate/net/loop.h"
#include "headgate/net/unix_listener.h"

namespace headgate::net {

struct Server::State {
  State(const ServerOptions& options, const base::DisciplinedClock& clock, SpareFiles& spare_files)
      : shared(options, clock, spare_files) {}

  // Runs `work` on the thread of every loop and returns when it has run on all.
  void RunOnAll(const std::function<void(Loop&)>& work) {
    std::latch done(static_cast<ptrdiff_t>(shared.loops.size()));
    for (const auto& loop : shared.loops) {
      loop->Post([&] {
        work(*loop);
        done.count_down();
      });
    }
    done.wait();
  }

  bool End(DrainKind kind, base::Duration timeout, const std::function<void()>& begun);

  // The limits of addresses with reserved places.
  std::vector<std::unique_ptr<ConnectionLimits>> reserved_limits;
  // Per address, then per loop. Connections refer to their entries.
  std::vector<std::unique_ptr<std::vector<Listener>>> listeners;
  std::vector<SocketFile> socket_files;
  std::vector<std::vector<int>> listening_sockets;  // per address
  bool started = false;
  // Declared last so that it is destroyed first: its loops close the connections that refer to the
  // members above.
  Shared shared;
};

namespace {

// Distributes the connections of one socket to all loops in turn.
Acceptor::HandOver RoundRobin(std::vector<std::unique_ptr<Loop>>& loops,
                              const std::vector<Listener>& listeners) {
  return [&loops, &listeners, next = size_t{0}](FileDescriptor socket, const sockaddr_storage& peer,
                                                AcceptedWith with) mutable {
    const size_t taker = next++ % loops.size();
    // A posted function must be copyable.
    const auto shared_socket = std::make_shared<FileDescriptor>(std::move(socket));
    loops[taker]->Post([&loop = *loops[taker], &mine = listeners[taker], shared_socket, peer,
                        with] { loop.Arrive(std::move(*shared_socket), peer, with, mine); });
  };
}

// One address gets at most three quarters of the places, so that a client that opens many
// connections does not make the health checks of others fail. All clients of a Unix socket have one
// address.
uint32_t ReservedPerAddressMax(const Endpoint& endpoint, uint32_t places) {
  return endpoint.is_unix() ? 0 : places - places / 4;
}

}  // namespace

Server::Server(const ServerOptions& options, const base::DisciplinedClock& clock,
               SpareFiles& spare_files)
    : state_(std::make_unique<State>(options, clock, spare_files)) {}

Server::~Server() {
  // End all threads before destroying any loop, because loops hand connections to each other.
  Stop();
  for (const SocketFile& file : state_->socket_files) file.Remove();
}

absl::StatusOr<Endpoint> Server::Listen(
    const Endpoint& endpoint, const std::function<SessionChooser(uint32_t loop)>& sessions,
    const ListenOptions& listen_options) {
  HEADGATE_CHECK(!state_->started);
  const auto loop_count = static_cast<uint32_t>(state_->shared.loops.size());
  HEADGATE_ASSIGN_OR_RETURN(
      ListeningSockets sockets,
      ListenOn(endpoint, loop_count, state_->shared.options.backlog, listen_options.unix_mode));
  std::vector<FileDescriptor> in_order;
  for (std::vector<FileDescriptor>& of_loop : sockets.by_loop) {
    for (FileDescriptor& socket : of_loop) in_order.push_back(std::move(socket));
  }
  Adopt(endpoint, std::move(in_order), sessions, listen_options);
  return sockets.bound;
}

void Server::Adopt(const Endpoint& endpoint, std::vector<FileDescriptor> sockets,
                   const std::function<SessionChooser(uint32_t loop)>& sessions,
                   const ListenOptions& listen_options) {
  HEADGATE_CHECK(!state_->started);
  const auto loop_count = static_cast<uint32_t>(state_->shared.loops.size());
  const uint32_t reserved = listen_options.reserved_connections_max;
  ConnectionLimits& limits =
      reserved == 0 ? state_->shared.limits
                    : *state_->reserved_limits.emplace_back(std::make_unique<ConnectionLimits>(
                          reserved, ReservedPerAddressMax(endpoint, reserved)));
  const size_t spares_kept =
      reserved == 0 ? SpareFiles::kKeptFromRefusals : SpareFiles::kKeptFromReservedPlaces;
  auto& listeners = *state_->listeners.emplace_back(std::make_unique<std::vector<Listener>>());
  for (uint32_t i = 0; i < loop_count; ++i) {
    listeners.push_back({.choose_session = sessions(i),
                         .tls = listen_options.tls,
                         .proxies = listen_options.proxies,
                         .limits = limits,
                         .has_reserved_places = reserved != 0});
  }
  if (endpoint.is_unix()) state_->socket_files.emplace_back(endpoint.address);
  std::vector<int>& numbers = state_->listening_sockets.emplace_back();
  for (size_t i = 0; i < sockets.size(); ++i) {
    numbers.push_back(sockets[i].get());
    // Sockets that ListenOn has made for one loop stay together.
    const size_t at = i * loop_count / sockets.size();
    Loop& loop = *state_->shared.loops[at];
    loop.AddAcceptor(
        std::move(sockets[i]), spares_kept,
        sockets.size() < loop_count
            ? RoundRobin(state_->shared.loops, listeners)
            : [&loop, &mine = listeners[at]](FileDescriptor connection,
                                             const sockaddr_storage& peer, AcceptedWith with) {
                loop.Arrive(std::move(connection), peer, with, mine);
              });
  }
}

const std::vector<std::vector<int>>& Server::listening_sockets() const {
  return state_->listening_sockets;
}

EventLoop& Server::loop(uint32_t index) { return state_->shared.loops.at(index)->events(); }

void Server::Stop() {
  for (const auto& loop : state_->shared.loops) loop->Stop();
}

void Server::Start() {
  HEADGATE_CHECK(!state_->started);
  state_->started = true;
  for (const auto& loop : state_->shared.loops) loop->Start();
}

bool Server::Drain(base::Duration timeout, const std::function<void()>& begun) {
  return state_->End(DrainKind::kForGood, timeout, begun);
}

bool Server::LeaveToSuccessor(base::Duration timeout, const std::function<void()>& begun) {
  state_->socket_files.clear();
  return state_->End(DrainKind::kToSuccessor, timeout, begun);
}

bool Server::State::End(DrainKind kind, base::Duration timeout,
                        const std::function<void()>& begun) {
  if (!started) return true;
  // The time that a busy loop needs for its turn counts too.
  const base::MonotonicTime deadline = base::MonotonicNow() + timeout;
  const auto is_empty = [&](ConnectionLimits& limits) {
    return limits.WaitUntilEmpty(std::max(base::Duration(0), deadline - base::MonotonicNow()));
  };
  RunOnAll([kind](Loop& loop) { loop.Drain(kind); });
  // All connections that were handed over before have arrived after this.
  RunOnAll([](Loop&) {});
  if (begun) begun();
  // An arrival is counted as a connection before it stops counting as an arrival, so check the
  // arrivals first.
  bool empty = is_empty(shared.arriving);
  empty = is_empty(shared.limits) && empty;
  for (const auto& limits : reserved_limits) empty = is_empty(*limits) && empty;
  if (empty) return true;
  RunOnAll([](Loop& loop) { loop.CutOff(); });
  return false;
}

Counters Server::counters() const {
  Counters sum;
  for (const auto& loop : state_->shared.loops) sum += loop->ReadCounters();
  return sum;
}

}  // namespace headgate::net
