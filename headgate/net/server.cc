#include "headgate/net/server.h"

#include <sys/socket.h>

#include <latch>
#include <utility>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/net/listen.h"
#include "headgate/net/loop.h"

namespace headgate::net {

struct Server::State {
  State(const ServerOptions& options, const base::DisciplinedClock& clock) : shared(options, clock) {
    for (uint32_t i = 0; i < options.threads; ++i) loops.push_back(std::make_unique<Loop>(shared));
  }

  // Runs `work` on every loop's thread and returns when it has run on all.
  void RunOnAll(const std::function<void(Loop&)>& work) {
    std::latch done(static_cast<ptrdiff_t>(loops.size()));
    for (const auto& loop : loops) {
      loop->Post([&] {
        work(*loop);
        done.count_down();
      });
    }
    done.wait();
  }

  Shared shared;
  // Per address, then per loop. Connections refer to theirs.
  std::vector<std::unique_ptr<std::vector<SessionFactories>>> factories;
  std::vector<std::string> unix_paths;
  std::vector<std::unique_ptr<Loop>> loops;
  bool started = false;
};

namespace {

// Hands the connections of one socket to all loops in turn.
Loop::HandOver RoundRobin(std::vector<std::unique_ptr<Loop>>& loops, const std::vector<SessionFactories>& factories) {
  return [&loops, &factories, next = size_t{0}](FileDescriptor socket, const sockaddr_storage& peer) mutable {
    const size_t taker = next++ % loops.size();
    // A posted function must be copyable.
    const auto shared_socket = std::make_shared<FileDescriptor>(std::move(socket));
    loops[taker]->Post([&loop = *loops[taker], &mine = factories[taker], shared_socket, peer] {
      loop.Adopt(std::move(*shared_socket), peer, mine);
    });
  };
}

}  // namespace

Server::Server(const ServerOptions& options, const base::DisciplinedClock& clock)
    : state_(std::make_unique<State>(options, clock)) {}

Server::~Server() {
  // All threads end before any loop goes: loops hand connections to each other.
  Stop();
  for (const std::string& path : state_->unix_paths) ::unlink(path.c_str());
}

absl::StatusOr<Endpoint> Server::Listen(const Endpoint& endpoint,
                                        const std::function<SessionFactories(uint32_t loop)>& sessions) {
  HEADGATE_CHECK(!state_->started);
  const auto loop_count = static_cast<uint32_t>(state_->loops.size());
  HEADGATE_ASSIGN_OR_RETURN(ListeningSockets sockets, ListenOn(endpoint, loop_count, state_->shared.options.backlog));
  auto& factories = *state_->factories.emplace_back(std::make_unique<std::vector<SessionFactories>>());
  for (uint32_t i = 0; i < loop_count; ++i) factories.push_back(sessions(i));
  if (endpoint.is_unix()) {
    state_->unix_paths.push_back(endpoint.address);
    state_->loops[0]->AddDoor(std::move(sockets.by_loop[0][0]), RoundRobin(state_->loops, factories));
    return sockets.bound;
  }
  for (uint32_t i = 0; i < loop_count; ++i) {
    Loop& loop = *state_->loops[i];
    for (FileDescriptor& socket : sockets.by_loop[i]) {
      loop.AddDoor(std::move(socket),
                   [&loop, &mine = factories[i]](FileDescriptor connection, const sockaddr_storage& peer) {
                     loop.Adopt(std::move(connection), peer, mine);
                   });
    }
  }
  return sockets.bound;
}

EventLoop& Server::loop(uint32_t index) { return state_->loops.at(index)->events(); }

void Server::Stop() {
  for (const auto& loop : state_->loops) loop->Stop();
}

void Server::Start() {
  HEADGATE_CHECK(!state_->started);
  state_->started = true;
  for (const auto& loop : state_->loops) loop->Start();
}

bool Server::Drain(base::Duration timeout) {
  if (!state_->started) return true;
  state_->RunOnAll([](Loop& loop) { loop.Drain(); });
  // Connections that were handed over meanwhile have arrived after this.
  state_->RunOnAll([](Loop&) {});
  if (state_->shared.limits.WaitUntilEmpty(timeout)) return true;
  state_->RunOnAll([](Loop& loop) { loop.CutOff(); });
  return false;
}

Counters Server::counters() const {
  Counters sum;
  for (const auto& loop : state_->loops) sum += loop->ReadCounters();
  return sum;
}

}  // namespace headgate::net
