// For the tests in this folder: one bucket "b" in the Lua host, from which nodes get leases, and
// whose limit may change.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include "tests/redis/lua_store.h"

namespace headgate::redis_host {

inline constexpr base::Duration kTtl = std::chrono::seconds(2);
// Nodes of different instances.
inline constexpr uint64_t kNode = 0x10000;
inline constexpr uint64_t kOther = 0x20000;

// With HEADGATE_LEASES_IN=cpp in the environment, the C++ arithmetic replaces the scripts.
class LeaseRig : public ::testing::Test {
 protected:
  LeaseRig() {
    const char* in = std::getenv("HEADGATE_LEASES_IN");
    if (in != nullptr && std::string_view(in) == "cpp") store.host = &store.arithmetic;
  }

  void Use(const algorithm::LimitSpec& spec) { limit = store.Intern(spec); }

  // Empty if buckets of this kind never grant leases.
  std::optional<store::LeaseGrant> AskIfLeased(store::LeaseAsk ask) {
    ask.ttl = kTtl;
    const store::SharedAnswer answer =
        store.Ask({.name = "b", .limit = limit, .lease = ask, .leased = true}, now);
    if (answer.status.code() == absl::StatusCode::kFailedPrecondition) return std::nullopt;
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    events = answer.events;
    decision = answer.decision;
    return answer.grant;
  }
  // A brief lease of the wanted requests, as far as they are there.
  std::optional<store::LeaseGrant> AskIfLeased(store::LeaseId id, uint64_t want,
                                               const std::vector<store::LeaseReport>& reports) {
    return AskIfLeased({.id = id, .want = want, .brief = want, .reports = reports});
  }
  store::LeaseGrant Ask(const store::LeaseAsk& ask) {
    const auto grant = AskIfLeased(ask);
    EXPECT_TRUE(grant.has_value()) << "never leased";
    return grant.value_or(store::LeaseGrant{});
  }
  store::LeaseGrant Ask(store::LeaseId id, uint64_t want,
                        const std::vector<store::LeaseReport>& reports = {}) {
    return Ask({.id = id, .want = want, .brief = want, .reports = reports});
  }
  store::SharedAnswer Do(store::Operation operation, uint64_t cost) {
    const store::SharedAnswer answer = store.Ask({.name = "b",
                                                  .limit = limit,
                                                  .cost = cost,
                                                  .operation = operation,
                                                  .leased = true,
                                                  .history = history},
                                                 now);
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    events = answer.events;
    return answer;
  }
  uint64_t Remaining() { return Do(store::Operation::kPeek, 0).decision.remaining; }
  bool Take(uint64_t cost) { return Do(store::Operation::kTake, cost).decision.allowed; }

  LuaStore store;
  store::LimitHandle limit;
  std::vector<store::LimitChange> history;
  base::Instant now = base::Instant::FromNanos(1'790'000'000'000'000'000);
  store::SharedEvents events;
  algorithm::Decision decision{};  // of the last ask
};

}  // namespace headgate::redis_host
