// Compares a round of the compare-and-set store with the scripts of the Redis store, in the Lua
// host: over 10^5 random steps for each kind of bucket, without a difference in an answer or in a
// byte of the bucket.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include <fmt/format.h>

#include "headgate/algorithm/properties.h"
#include "headgate/store/answer_without_store.h"
#include "headgate/store/cas/bucket_round.h"
#include "headgate/store/redis/value_checksum.h"
#include "tests/redis/lease_walk.h"
#include "tests/redis/lua_store.h"
#include "tests/redis/twin_walk.h"
#include "tests/vectors/store_vectors.h"

namespace headgate::cas_test {
namespace round_twin_test {

using algorithm::Algorithm;
using base::Instant;
using redis_host::LeaseStep;
using redis_host::LeaseWalk;
using redis_host::LuaStore;
using redis_host::TwinStep;
using redis_host::TwinWalk;
using store::SharedAnswer;
using store::SharedRequest;
using namespace std::chrono_literals;

constexpr uint64_t kSteps = 100'000;
// To repeat a failure alone, put its seed here.
constexpr uint64_t kSeed = 20'261'125;

std::string BucketOf(const std::string& value) {
  return value.empty() ? "" : store::redis::BucketOfValue(value).value_or("a wrong checksum");
}

// The bucket under the key, a string or a list, without its checksum.
std::string BucketIn(LuaStore& store, Instant now) {
  const wire::RespValue reply = store.keyspace.Run(std::vector<std::string>{"GET", "b"}, now);
  if (!reply.is_error()) return BucketOf(reply.text);
  std::string value;
  for (const wire::RespValue& item :
       store.keyspace.Run(std::vector<std::string>{"LRANGE", "b", "0", "-1"}, now).items)
    value += item.text;
  return BucketOf(value);
}

std::string Describe(const SharedAnswer& answer) {
  return fmt::format("{} {} granted {} others {} ttl {} next_after {}, events {}{}{}",
                     answer.status.ToString(), model::Describe(answer.decision),
                     answer.grant.granted, answer.grant.others, answer.grant.ttl.count(),
                     answer.grant.next_after.count(), answer.events.replaced_corrupt,
                     answer.events.clock_reset, answer.events.carried_over);
}

// One bucket, under the scripts and under rounds of one request each.
class Twins {
 public:
  explicit Twins(uint64_t seed) {
    // Every other bucket is kept even when it is fresh.
    if (seed % 2 == 0) lua_.context.kept_least = 40 * 24h;
  }

  store::LimitHandle Intern(const algorithm::LimitSpec& spec) { return lua_.Intern(spec); }

  // Asks both, and returns the scripts' answer. Describes the first difference in `difference`.
  SharedAnswer Ask(const SharedRequest& request, Instant now, std::string& difference) {
    if (!lua_.keyspace.Contains("b", now)) Forget(now, difference);
    const SharedAnswer expected = lua_.Ask(request, now);
    const SharedAnswer answer = Round(request, now);
    seen_carried_over += answer.events.carried_over;
    seen_clock_reset += answer.events.clock_reset;
    if (Describe(expected) != Describe(answer))
      difference = fmt::format("lua: {}\ncas: {}", Describe(expected), Describe(answer));
    const std::string value = BucketIn(lua_, now);
    if (value != bucket_ && difference.empty()) {
      difference = "the values differ, " + Describe(expected);
      for (const std::string& bytes : {value, bucket_}) {
        difference += "\n";
        for (const char c : bytes) difference += fmt::format("{:02x}", static_cast<uint8_t>(c));
      }
    }
    return expected;
  }

  uint64_t seen_carried_over = 0;
  uint64_t seen_clock_reset = 0;

 private:
  void Forget(Instant now, std::string& difference) {
    if (!bucket_.empty() && expires_at_ > now && highest_ <= now)
      difference = "the scripts have forgotten a bucket that is still needed";
    bucket_.clear();
  }

  SharedAnswer Round(const SharedRequest& request, Instant now) {
    if (auto answer = store::AnswerWithoutStore(request)) return *answer;
    store::cas::BucketRound round(bucket_, now);
    const SharedAnswer answer = round.Answer(request);
    if (round.changes() != store::cas::Changes::kNothing) {
      bucket_ = round.bytes();
      expires_at_ = round.expires_at();
      highest_ = std::max(highest_, now);
    }
    return answer;
  }

  LuaStore lua_;
  std::string bucket_;
  Instant expires_at_{0};
  Instant highest_{0};
};

class RoundTwin : public ::testing::TestWithParam<Algorithm> {};

TEST_P(RoundTwin, AnswersLikeTheScripts) {
  uint64_t steps = 0;
  for (uint64_t i = 0; steps < kSteps; ++i) {
    const uint64_t seed = kSeed + 1'000'000 * static_cast<uint64_t>(GetParam()) + i;
    Twins twins(seed);
    TwinWalk walk(seed, GetParam());
    for (uint64_t k = 0; k < 200 && !walk.at_the_end_of_time(); ++k, ++steps) {
      const TwinStep step = walk.Next();
      walk.Answer(step);
      std::string difference;
      twins.Ask({.name = "b",
                 .limit = twins.Intern(step.spec),
                 .cost = step.cost,
                 .operation = step.operation,
                 .taken_at = step.taken_at},
                step.now, difference);
      ASSERT_EQ(difference, "") << "seed " << seed << "\n" << walk.story();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, RoundTwin,
                         ::testing::Values(Algorithm::kTokenBucket, Algorithm::kLeakyBucket,
                                           Algorithm::kLeakyBucketQueue, Algorithm::kFixedWindow,
                                           Algorithm::kSlidingWindowCounter,
                                           Algorithm::kSlidingWindowLog),
                         [](const auto& test) { return std::string(Name(test.param)); });

TEST(Round, AnswersTheVectorsOfChargesExactly) {
  store::LimitTable limits;
  std::map<size_t, std::string> buckets;
  vectors::ExpectAnswers(vectors::kCharges, [&](size_t bucket, const vectors::StoreStep& step) {
    store::cas::BucketRound round(buckets[bucket], step.now);
    const SharedAnswer answer =
        round.Answer({.name = "b",
                      .limit = *limits.Intern(*algorithm::Limit::Make(step.spec)),
                      .cost = step.cost,
                      .operation = step.operation,
                      .taken_at = step.taken_at});
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    EXPECT_EQ(answer.decision.at, step.now);
    buckets[bucket] = round.bytes();
    return answer.decision;
  });
}

class RoundLeaseTwin : public ::testing::TestWithParam<algorithm::Kind> {};

TEST_P(RoundLeaseTwin, GrantsLikeTheScripts) {
  uint64_t steps = 0;
  uint64_t granted = 0, carried_over = 0, clock_reset = 0;
  for (uint64_t seed = kSeed; steps < kSteps; ++seed) {
    Twins twins(seed);
    LeaseWalk walk(seed, GetParam().spec);
    for (uint64_t i = 0; i < 1000 && !walk.at_the_end_of_time(); ++i, ++steps) {
      const LeaseStep step = walk.Next();
      SharedRequest request{.name = "b",
                            .limit = twins.Intern(step.spec),
                            .cost = step.cost,
                            .operation = step.operation,
                            .taken_at = step.taken_at,
                            .keeps_limit = step.keeps_limit};
      if (step.kind == LeaseStep::Kind::kLease) {
        request.lease = step.ask;
        request.lease->reports = step.reports;
      }
      std::string difference;
      const SharedAnswer answer = twins.Ask(request, step.now, difference);
      walk.Note(step, answer);
      granted += answer.grant.granted > 0;
      ASSERT_EQ(difference, "") << "seed " << seed << "\n" << walk.story();
    }
    carried_over += twins.seen_carried_over;
    clock_reset += twins.seen_clock_reset;
  }
  EXPECT_GT(granted, kSteps / 20);
  EXPECT_GT(carried_over, kSteps / 200);
  EXPECT_GT(clock_reset, kSteps / 1000);
}

INSTANTIATE_TEST_SUITE_P(Of, RoundLeaseTwin, ::testing::ValuesIn(algorithm::kLeasedKinds),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace round_twin_test
}  // namespace headgate::cas_test
