#include "headgate/net/server.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <latch>
#include <utility>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/base/monotonic_time.h"
#include "headgate/net/listen.h"
#include "headgate/net/loop.h"

namespace headgate::net {

namespace {

// The file of a Unix socket that was just bound.
class SocketFile {
 public:
  explicit SocketFile(std::string path) : path_(std::move(path)) { ::lstat(path_.c_str(), &made_); }

  // Unless another server has put its own file there meanwhile.
  void Remove() const {
    struct stat now {};
    if (::lstat(path_.c_str(), &now) != 0) return;
    if (now.st_dev == made_.st_dev && now.st_ino == made_.st_ino) ::unlink(path_.c_str());
  }

 private:
  std::string path_;
  struct stat made_ {};
};

}  // namespace

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

  // The limits of addresses with reserved places.
  std::vector<std::unique_ptr<ConnectionLimits>> reserved_limits;
  // Per address, then per loop. Connections refer to their entries.
  std::vector<std::unique_ptr<std::vector<Listener>>> listeners;
  std::vector<SocketFile> socket_files;
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
  const uint32_t reserved = listen_options.reserved_connections_max;
  ConnectionLimits& limits = reserved == 0
                                 ? state_->shared.limits
                                 : *state_->reserved_limits.emplace_back(
                                       std::make_unique<ConnectionLimits>(reserved, reserved));
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
  if (endpoint.is_unix()) {
    state_->socket_files.emplace_back(endpoint.address);
    state_->shared.loops[0]->AddAcceptor(std::move(sockets.by_loop[0][0]), spares_kept,
                                         RoundRobin(state_->shared.loops, listeners));
    return sockets.bound;
  }
  for (uint32_t i = 0; i < loop_count; ++i) {
    Loop& loop = *state_->shared.loops[i];
    for (FileDescriptor& socket : sockets.by_loop[i]) {
      loop.AddAcceptor(
          std::move(socket), spares_kept,
          [&loop, &mine = listeners[i]](FileDescriptor connection, const sockaddr_storage& peer,
                                        AcceptedWith with) {
            loop.Arrive(std::move(connection), peer, with, mine);
          });
    }
  }
  return sockets.bound;
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

bool Server::Drain(base::Duration timeout) {
  if (!state_->started) return true;
  // The time that a busy loop needs for its turn counts too.
  const base::MonotonicTime deadline = base::MonotonicNow() + timeout;
  const auto is_empty = [&](ConnectionLimits& limits) {
    return limits.WaitUntilEmpty(std::max(base::Duration(0), deadline - base::MonotonicNow()));
  };
  state_->RunOnAll([](Loop& loop) { loop.Drain(); });
  // All connections that were handed over before have arrived after this.
  state_->RunOnAll([](Loop&) {});
  bool empty = is_empty(state_->shared.limits);
  for (const auto& limits : state_->reserved_limits) empty = is_empty(*limits) && empty;
  if (empty) return true;
  state_->RunOnAll([](Loop& loop) { loop.CutOff(); });
  return false;
}

Counters Server::counters() const {
  Counters sum;
  for (const auto& loop : state_->shared.loops) sum += loop->ReadCounters();
  return sum;
}

}  // namespace headgate::net
