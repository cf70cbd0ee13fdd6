// A server's state and a Redis client without a socket, for the tests, the fuzzer and the benchmark
// of this folder.
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/access/access_rig.h"
#include "headgate/front/resp/session.h"
#include "headgate/store/memory.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::front::resp {

// Counts decisions by limits that requests carry, and notes their keys if it hears them.
struct OwnLimits final : limiter::Observer {
  uint32_t OnRule(const rule::Rule&) override { return 0; }
  void OnDecision(uint32_t, const limiter::DecisionEvent&) override {}
  void OnOwnLimits(uint32_t, limiter::Outcome outcome, uint64_t count) override {
    counts[static_cast<size_t>(outcome)] += count;
  }
  void OnOwnKey(uint32_t, const limiter::OwnKeyEvent& event) override {
    keys.push_back(std::string(event.key) + " " + std::string(limiter::Name(event.outcome)) + " " +
                   std::to_string(event.cost));
  }
  using Observer::HearOwnKeys;
  uint64_t of(limiter::Outcome outcome) const { return counts[static_cast<size_t>(outcome)]; }

  std::array<uint64_t, limiter::kOutcomeCount> counts{};
  std::vector<std::string> keys;
};

struct World {
  explicit World(access::AccessOptions options = {})
      : access(std::move(options)),
        context({.checker = checker,
                 .access = access,
                 .post = [this](auto work) { posted.Add(std::move(work)); },
                 .version = "1.2.3"}) {}

  store::MemoryStore store{store::MemoryOptions{.max_buckets = 4096}};
  OwnLimits own_limits;
  limiter::Limiter limiter{store, &own_limits};
  limiter::Checker checker{limiter};
  access::PostedWork posted;
  access::Access access;
  Context context;
};

class Conversation {
 public:
  explicit Conversation(World& world, const net::Peer& peer = {}) : session_(world.context, peer) {}

  // Sends bytes at `now` and returns the reply. Like the event loop, it passes unconsumed bytes
  // again and calls the session again if there is more to do.
  std::string Send(std::string_view bytes) {
    std::string output;
    pending_.append(bytes);
    do {
      progress = session_.OnBytes(pending_, output, now);
      pending_ = std::string(std::string_view(pending_).substr(progress.consumed));
    } while (progress.more);
    return output;
  }

  // Sends one command and returns the bytes of its reply.
  std::string Ask(std::initializer_list<std::string_view> words) { return Send(Bytes(words)); }

  static std::string Bytes(std::initializer_list<std::string_view> words) {
    std::string bytes;
    wire::RespWriter writer(bytes, wire::RespVersion::k2);
    writer.Array(words.size());
    for (const std::string_view word : words) writer.Bulk(word);
    return bytes;
  }

  RespSession& session() { return session_; }

  base::Instant now = base::Instant::FromNanos(1'790'000'000'000'000'000);
  net::Session::Progress progress;

 private:
  RespSession session_;
  std::string pending_;
};

}  // namespace headgate::front::resp
