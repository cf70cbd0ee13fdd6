// Compares the scripts with the C++ arithmetic of leases, in the Lua host: over 10^5 random steps
// for each algorithm, without a difference in an answer, in a byte of the bucket or in its TTL.
#include <gtest/gtest.h>

#include <algorithm>
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
  return fmt::format("{} {} granted {} others {} ttl {} next_after {}, events {}{}{}",
                     answer.status.ToString(), model::Describe(answer.decision),
                     answer.grant.granted, answer.grant.others, answer.grant.ttl.count(),
                     answer.grant.next_after.count(), answer.events.replaced_corrupt,
                     answer.events.clock_reset, answer.events.carried_over);
}

// Counts the states in which the two could differ, to check that the steps reach them.
struct Seen {
  uint64_t granted = 0;
  uint64_t while_others_hold = 0;
  uint64_t with_a_request = 0;
  uint64_t denied = 0;
  uint64_t shortened = 0;  // by the end of a window
  uint64_t table_full = 0;
  uint64_t late = 0;        // reports of leases that had ended
  uint64_t given_back = 0;  // by those
  uint64_t ended_full = 0;  // as many ended leases as a bucket remembers
  uint64_t clock_reset = 0;
  uint64_t carried_over = 0;

  void Note(const LeaseStep& step, const SharedAnswer& answer) {
    const store::LeaseGrant& grant = answer.grant;
    if (grant.granted > 0) ++granted;
    if (grant.granted > 0 && grant.others > 0) ++while_others_hold;
    if (grant.granted > 0 && step.ask.cost > 0) ++with_a_request;
    if (step.kind == LeaseStep::Kind::kLease && !answer.decision.allowed) ++denied;
    if (grant.granted > 0 && grant.ttl < step.ask.ttl) ++shortened;
    if (step.ask.want > 0 && grant.granted == 0 && grant.others >= algorithm::kLeasesMax)
      ++table_full;
    if (answer.events.clock_reset) ++clock_reset;
    if (answer.events.carried_over) ++carried_over;
  }
};

// One bucket, under the scripts and under the C++ arithmetic.
class Twins {
 public:
  Twins(uint64_t seed, const LimitSpec& kind, Seen& seen) : seen_(seen), walk_(seed, kind) {
    cpp_.host = &cpp_.arithmetic;
    // Every other bucket is kept even when it is fresh, and its values are not deleted.
    if (seed % 2 == 0) lua_.context.kept_least = cpp_.context.kept_least = 40 * 24h;
  }

  // Describes the first difference; empty if there is none.
  std::string Step() {
    const LeaseStep step = walk_.Next();
    NoteLate(step);
    const SharedAnswer expected = Do(lua_, step);
    const SharedAnswer answer = Do(cpp_, step);
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
                                 .operation = step.operation,
                                 .taken_at = step.taken_at,
                                 .keeps_limit = step.keeps_limit};
    if (step.kind == LeaseStep::Kind::kLease) {
      request.lease = step.ask;
      request.lease->reports = step.reports;
    }
    return store.Ask(request, step.now);
  }

  // Checks the bucket that the reports of the step find, before the take.
  void NoteLate(const LeaseStep& step) {
    std::optional<store::StoredBucket> bucket = Stored(step.now);
    if (!bucket || bucket->limit.spec() != step.spec || !KeepsLeases(step.spec.algorithm) ||
        bucket->state.seen > step.now) {
      return;
    }
    ExpireLeases(bucket->limit, bucket->state, bucket->leases, step.now);
    const auto ended = [&] {
      return static_cast<size_t>(
          std::count_if(bucket->leases.begin(), bucket->leases.end(),
                        [](const algorithm::Lease& lease) { return lease.has_ended(); }));
    };
    if (ended() == algorithm::kEndedLeasesMax) ++seen_.ended_full;
    for (const algorithm::LeaseReport& report : step.reports) {
      const size_t before = ended();
      const algorithm::BucketState state = bucket->state;
      algorithm::LeaseGrant grant;
      const std::array reports{report};
      AskLease(bucket->limit, bucket->state, bucket->leases,
               {.id = {.node = step.ask.id.node, .number = ~uint64_t{0}}, .reports = reports},
               step.now, grant);
      if (!report.returned || ended() == before) continue;
      ++seen_.late;
      if (bucket->state.edge != state.edge || bucket->state.count != state.count)
        ++seen_.given_back;
    }
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
      "{} granted, {} of them while others held some, {} with a request, {} ended by a window; "
      "{} requests denied; {} refused for lack of a place; {} late reports, {} of them gave "
      "something "
      "back; {} times as many ended leases as are remembered; {} clocks set back, {} buckets "
      "carried "
      "over\n",
      seen.granted, seen.while_others_hold, seen.with_a_request, seen.shortened, seen.denied,
      seen.table_full, seen.late, seen.given_back, seen.ended_full, seen.clock_reset,
      seen.carried_over);
  EXPECT_GT(seen.granted, kSteps / 20);
  EXPECT_GT(seen.while_others_hold, kSteps / 200);
  EXPECT_GT(seen.with_a_request, kSteps / 200);
  EXPECT_GT(seen.denied, kSteps / 200);
  EXPECT_GT(seen.shortened, kSteps / 1000);
  EXPECT_GT(seen.table_full, 10u);
  EXPECT_GT(seen.late, kSteps / 500);
  EXPECT_GT(seen.given_back, kSteps / 1000);
  EXPECT_GT(seen.ended_full, 3u);
  EXPECT_GT(seen.clock_reset, kSteps / 1000);
  EXPECT_GT(seen.carried_over, kSteps / 200);
}

INSTANTIATE_TEST_SUITE_P(Of, LuaLeaseTwin, ::testing::ValuesIn(algorithm::kLeasedKinds),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace lua_lease_twin_test
}  // namespace headgate::redis_host
