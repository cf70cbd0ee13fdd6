// Compares the scripts with the C++ arithmetic of leases, in the Lua host: over 10^5 random steps
// for each algorithm, without a difference in an answer, in a byte of the bucket or in its TTL.
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "headgate/algorithm/properties.h"
#include "headgate/store/bucket_codec.h"
#include "tests/redis/lease_walk.h"
#include "tests/redis/lua_store.h"

namespace headgate::redis_host {
namespace lua_lease_twin_test {

using algorithm::LimitSpec;
using base::Duration;
using base::Instant;
using store::SharedAnswer;
using namespace std::chrono_literals;

constexpr uint64_t kSteps = 100'000;
constexpr uint64_t kStepsOfOneBucket = 1000;
// To repeat a failure alone, put its seed here.
constexpr uint64_t kSeed = 20'261'122;

// Describes the value of the key.
std::string ValueIn(LuaStore& store, Instant now) {
  wire::RespValue reply = store.keyspace.Run(std::vector<std::string>{"GET", "b"}, now);
  if (reply.is_error())
    reply = store.keyspace.Run(std::vector<std::string>{"LRANGE", "b", "0", "-1"}, now);
  return reply.ToString();
}

std::string Describe(const SharedAnswer& answer) {
  return fmt::format(
      "{} {} granted {} remaining {} holders {} ttl {} retry_after {}, events {}{}{}",
      answer.status.ToString(), model::Describe(answer.decision), answer.grant.granted,
      answer.grant.remaining, answer.grant.holders, answer.grant.ttl.count(),
      answer.grant.retry_after.count(), answer.events.replaced_corrupt, answer.events.clock_reset,
      answer.events.carried_over);
}

// Counts the states in which the two could differ, to check that the steps reach them.
struct Seen {
  uint64_t granted = 0;
  uint64_t of_several_holders = 0;
  uint64_t shortened = 0;  // returned after the end of a window, or granted before one
  uint64_t table_full = 0;
  uint64_t clock_reset = 0;
  uint64_t carried_over = 0;

  void Note(const LeaseStep& step, const SharedAnswer& answer) {
    const store::LeaseGrant& grant = answer.grant;
    if (grant.granted > 0) ++granted;
    if (grant.granted > 0 && grant.holders > 2) ++of_several_holders;
    if (grant.granted > 0 && grant.ttl < step.ask.ttl) ++shortened;
    if (grant.granted == 0 && grant.holders > algorithm::kLeasesMax) ++table_full;
    if (answer.events.clock_reset) ++clock_reset;
    if (answer.events.carried_over) ++carried_over;
  }
};

// One bucket, under the scripts and under the C++ arithmetic.
class Twins {
 public:
  Twins(uint64_t seed, const LimitSpec& kind, Seen& seen) : seen_(seen), walk_(seed, kind) {
    cpp_.host = &cpp_.arithmetic;
    // Every other bucket is kept even when it looks unused, and its values are not deleted.
    if (seed % 2 == 0) lua_.context.kept_least = cpp_.context.kept_least = 40 * 24h;
  }

  // Describes the first difference; empty if there is none.
  std::string Step() {
    const LeaseStep step = walk_.Next();
    const SharedAnswer expected = Do(lua_, step);
    const SharedAnswer answer = step.kind == LeaseStep::Kind::kDebit ? Debit(step) : Do(cpp_, step);
    walk_.Note(step, expected);
    seen_.Note(step, expected);
    if (Describe(expected) != Describe(answer)) {
      return fmt::format("{}lua: {}\ncpp: {}", walk_.story(), Describe(expected), Describe(answer));
    }
    const std::string lua = ValueIn(lua_, step.now);
    const std::string cpp = ValueIn(cpp_, step.now);
    if (lua != cpp) return fmt::format("{}lua: {}\ncpp: {}", walk_.story(), lua, cpp);
    if (!KeptAlike(step)) return walk_.story() + "the TTLs differ";
    // A TTL that differs by a millisecond counts as equal, but such differences must not add up.
    cpp_.keyspace = lua_.keyspace;
    return "";
  }

  bool over() const { return walk_.at_the_end_of_time(); }

 private:
  static SharedAnswer Do(LuaStore& store, const LeaseStep& step) {
    store::SharedRequest request{.name = "b",
                                 .limit = store.Intern(step.spec),
                                 .cost = step.cost,
                                 .operation = step.operation};
    switch (step.kind) {
      case LeaseStep::Kind::kRequest:
        break;
      case LeaseStep::Kind::kLease:
        request.lease = step.ask;
        request.lease->reports = step.reports;
        break;
      case LeaseStep::Kind::kDebit: {
        // Like the limiter: takes the whole cost, or the rest in a second call.
        request.keeps_limit = true;
        SharedAnswer answer = store.Ask(request, step.now);
        if (answer.decision.allowed || answer.decision.remaining == 0) return answer;
        request.cost = answer.decision.remaining;
        return store.Ask(request, step.now);
      }
    }
    return store.Ask(request, step.now);
  }

  // Takes like the limiter, in one or two calls, and compares with one step of the arithmetic.
  SharedAnswer Debit(const LeaseStep& step) {
    std::optional<store::StoredBucket> bucket = Stored(step.now);
    SharedAnswer answer = Do(cpp_, step);
    // Not compared: a limit of 0 (answered without the bucket), a clock that is set back (changes
    // the bucket first), and a full bucket (gone after a first call that denies).
    const bool is_leased =
        bucket && KeepsLeases(bucket->limit.algorithm()) && !bucket->leases.empty();
    if (!is_leased || step.cost == 0 || step.spec.requests == 0 || bucket->limit.denies_all() ||
        bucket->state.seen > step.now) {
      return answer;
    }
    ExpireLeases(bucket->limit, bucket->state, bucket->leases, step.now);
    if (KeptUntil(bucket->limit, bucket->state, bucket->leases, step.now) <= step.now)
      return answer;
    algorithm::Debit(bucket->limit, bucket->state, bucket->leases, step.cost, step.now);
    const std::optional<store::StoredBucket> stored = Stored(step.now);
    if (!stored || stored->state != bucket->state || stored->leases != bucket->leases) {
      answer.status = absl::InternalError("a debit in one step differs from one in two");
    }
    return answer;
  }

  std::optional<store::StoredBucket> Stored(Instant now) {
    return store::ParseBucket(cpp_.keyspace.Run(std::vector<std::string>{"GET", "b"}, now).text);
  }

  bool KeptAlike(const LeaseStep& step) {
    const auto lua = lua_.keyspace.TimeToLive("b", step.now);
    const auto cpp = cpp_.keyspace.TimeToLive("b", step.now);
    if (lua.has_value() != cpp.has_value()) return false;
    if (!lua || (*lua - *cpp <= 1ms && *cpp - *lua <= 1ms)) return true;
    // The script does not know the length of a month; it keeps a bucket that outlives one for a
    // year.
    return IsCalendar(step.spec.align) && *cpp <= *lua;
  }

  Seen& seen_;
  LeaseWalk walk_;
  LuaStore lua_;
  LuaStore cpp_;
};

class LuaLeaseTwin : public ::testing::TestWithParam<algorithm::Kind> {};

TEST_P(LuaLeaseTwin, AgreesWithTheCppArithmetic) {
  uint64_t steps = 0;
  Seen seen;
  for (uint64_t seed = kSeed; steps < kSteps; ++seed) {
    Twins twins(seed, GetParam().spec, seen);
    for (uint64_t i = 0; i < kStepsOfOneBucket && !twins.over(); ++i, ++steps) {
      const std::string difference = twins.Step();
      ASSERT_TRUE(difference.empty()) << "seed " << seed << "\n" << difference;
    }
  }
  fmt::print(
      "{} granted, {} of them while others held some, {} ended by a window; {} refused for lack of "
      "a place; {} clocks "
      "set "
      "back, {} buckets carried over\n",
      seen.granted, seen.of_several_holders, seen.shortened, seen.table_full, seen.clock_reset,
      seen.carried_over);
  EXPECT_GT(seen.granted, kSteps / 20);
  EXPECT_GT(seen.of_several_holders, kSteps / 200);
  EXPECT_GT(seen.shortened, kSteps / 1000);
  EXPECT_GT(seen.table_full, 10u);
  EXPECT_GT(seen.clock_reset, kSteps / 1000);
  EXPECT_GT(seen.carried_over, kSteps / 200);
}

INSTANTIATE_TEST_SUITE_P(Of, LuaLeaseTwin, ::testing::ValuesIn(algorithm::kLeasedKinds),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace lua_lease_twin_test
}  // namespace headgate::redis_host
