// Roll-outs: new limits for a part of the keys, or in shadow beside the rule's own.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headgate/base/hash_rig.h"
#include "headgate/base/random.h"
#include "headgate/limiter/checker.h"
#include "headgate/rule/read/load.h"
#include "headgate/store/memory.h"

namespace headgate::limiter {
namespace rollout_test {

using base::Instant;
using namespace std::chrono_literals;

constexpr Instant kStart = Instant::FromNanos(1'790'000'000'000'000'000);

class ComparingObserver final : public Observer {
 public:
  uint32_t OnRule(const rule::Rule&) override { return 0; }
  uint32_t OnRollout(const rule::Rule&) override { return 7; }
  void OnDecision(uint32_t, const DecisionEvent&) override { ++decisions; }
  void OnOwnLimits(uint32_t, Outcome, uint64_t) override {}
  void OnShadowRollout(uint32_t, const RolloutEvent& event) override {
    EXPECT_EQ(event.series, 7u);
    ++compared[event.rule_allows][event.rollout_allows];
  }
  uint64_t decisions = 0;
  std::array<std::array<uint64_t, 2>, 2> compared{};
};

class RolloutTest : public ::testing::Test {
 protected:
  // A rule for `user` with these lines behind its key.
  void Publish(const std::string& lines, Instant now = kStart, const std::string& head = "") {
    const rule::read::RuleFile file{
        .name = "f", .text = "domain: d\n" + head + "descriptors:\n- key: user\n" + lines};
    const rule::read::LoadResult loaded = rule::read::LoadRules({&file, 1});
    ASSERT_TRUE(loaded.ok()) << rule::Describe(loaded.problems);
    ASSERT_TRUE(limiter_.OnRules(loaded.rules, now).ok());
  }
  bool Take(const std::string& user, Instant now = kStart, uint64_t cost = 1) {
    return Ask(user, Operation::kTake, now, cost);
  }
  bool Ask(const std::string& user, Operation operation, Instant now, uint64_t cost) {
    const rule::Entry entry{"user", user};
    const rule::Descriptor descriptor{.entries = {&entry, 1}, .cost = cost};
    EXPECT_TRUE(checker_
                    .Check({.domain = "d", .descriptors = {&descriptor, 1}, .operation = operation},
                           response_, now)
                    .ok());
    return response_.allowed;
  }
  uint64_t LimitOf(const std::string& user) {
    (void)Ask(user, Operation::kPeek, kStart, 0);
    return response_.descriptors[0].limit->spec().requests;
  }
  uint64_t Remaining(const std::string& user, Instant now = kStart) {
    (void)Ask(user, Operation::kPeek, now, 0);
    return response_.descriptors[0].decision.remaining;
  }

  store::MemoryStore store_{{.max_buckets = 100'000, .secret = base::SecretFromSeed(1)}};
  ComparingObserver observer_;
  Limiter limiter_{store_, &observer_};
  Checker checker_{limiter_};
  Response response_;
};

constexpr const char* kTen = "  rate_limit: {unit: day, requests_per_unit: 10}\n";

std::string Percent(const std::string& percent, int requests = 20) {
  return std::string(kTen) + "  rollout: {percent: " + percent +
         ", rate_limit: {unit: day, requests_per_unit: " + std::to_string(requests) + "}}\n";
}
std::string Shadow(int requests) {
  return std::string(kTen) +
         "  rollout: {shadow: true, rate_limit: {unit: day, requests_per_unit: " +
         std::to_string(requests) + "}}\n";
}

TEST_F(RolloutTest, HoldsForAboutThePercentageOfTheKeys) {
  Publish(Percent("10"));
  int rolled_out = 0;
  for (int i = 0; i < 10'000; ++i) rolled_out += LimitOf("u" + std::to_string(i)) == 20 ? 1 : 0;
  // 1,000 expected, with a standard deviation of 30; five of them.
  EXPECT_GT(rolled_out, 850);
  EXPECT_LT(rolled_out, 1'150);
  Publish(Percent("100"));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(LimitOf("u" + std::to_string(i)), 20u);
}

TEST_F(RolloutTest, ALargerPartContainsTheSmallerOne) {
  Publish(Percent("5"));
  std::vector<std::string> first;
  for (int i = 0; i < 1000; ++i) {
    const std::string user = "u" + std::to_string(i);
    if (LimitOf(user) == 20) first.push_back(user);
  }
  ASSERT_FALSE(first.empty());
  Publish(Percent("30"));
  for (const std::string& user : first) EXPECT_EQ(LimitOf(user), 20u) << user;
}

// Another process has another secret; the choice must be the same there.
TEST_F(RolloutTest, EveryInstanceChoosesTheSameKeys) {
  store::MemoryStore other_store{{.max_buckets = 1000, .secret = base::SecretFromSeed(2)}};
  Limiter other(other_store, nullptr);
  Publish(Percent("50"));
  const rule::read::RuleFile file{.name = "g",
                                  .text = "domain: d\ndescriptors:\n- key: user\n" + Percent("50")};
  ASSERT_TRUE(other.OnRules(rule::read::LoadRules({&file, 1}).rules, kStart).ok());
  Checker checker(other);
  for (int i = 0; i < 200; ++i) {
    const std::string user = "u" + std::to_string(i);
    const rule::Entry entry{"user", user};
    const rule::Descriptor descriptor{.entries = {&entry, 1}, .cost = 0};
    Response response;
    ASSERT_TRUE(
        checker
            .Check({.domain = "d", .descriptors = {&descriptor, 1}, .operation = Operation::kPeek},
                   response, kStart)
            .ok());
    EXPECT_EQ(response.descriptors[0].limit->spec().requests, LimitOf(user)) << user;
  }
}

TEST_F(RolloutTest, NobodyGetsAFreshAllowanceByItsBeginPromotionOrEnd) {
  Publish(kTen);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Take("ann"));
  Publish(Percent("100"));
  EXPECT_EQ(Remaining("ann"), 16u);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Take("ann"));
  // Taken back.
  Publish(kTen);
  EXPECT_EQ(Remaining("ann"), 4u);
  // Promoted.
  Publish(Percent("100"));
  EXPECT_TRUE(Take("ann"));
  Publish("  rate_limit: {unit: day, requests_per_unit: 20}\n");
  EXPECT_EQ(Remaining("ann"), 13u);
}

// One limiter with one rule for `user`.
struct Instance {
  void Publish(const std::string& lines, Instant now) {
    const rule::read::RuleFile file{.name = "f",
                                    .text = "domain: d\ndescriptors:\n- key: user\n" + lines};
    const rule::read::LoadResult loaded = rule::read::LoadRules({&file, 1});
    ASSERT_TRUE(loaded.ok()) << rule::Describe(loaded.problems);
    ASSERT_TRUE(limiter.OnRules(loaded.rules, now).ok());
  }
  // Whether the request passed, and the remaining requests.
  std::pair<bool, uint64_t> Take(const std::string& user, Instant now) {
    const rule::Entry entry{"user", user};
    const rule::Descriptor descriptor{.entries = {&entry, 1}, .cost = 1};
    EXPECT_TRUE(
        checker.Check({.domain = "d", .descriptors = {&descriptor, 1}}, response, now).ok());
    return {response.allowed, response.descriptors[0].decision.remaining};
  }

  store::MemoryStore store{{.max_buckets = 10'000, .secret = base::SecretFromSeed(1)}};
  Limiter limiter{store, nullptr};
  Checker checker{limiter};
  Response response;
};

// A key cannot tell whether a limit came with a roll-out or by a change of the rule: each of its
// buckets is carried over as of the moment at which its own limit changed. So nobody gets more by
// percentages that go up and down than by plain changes.
TEST(RolloutChanges, AreForAKeyLikePlainChangesAtTheSameMoments) {
  const std::array<std::string, 2> kOwn{
      "  rate_limit: {requests_per_unit: 20, period: 20s, algorithm: token_bucket}\n",
      "  rate_limit: {requests_per_unit: 5, period: 20s, algorithm: fixed_window}\n"};
  const std::array<std::string, 3> kNew{
      "rate_limit: {requests_per_unit: 4, period: 20s, algorithm: token_bucket}",
      "rate_limits: [{requests_per_unit: 2, period: 1s, algorithm: token_bucket}, "
      "{requests_per_unit: 40, period: 20s, algorithm: token_bucket}]",
      "rate_limit: {requests_per_unit: 60, period: 1m, algorithm: sliding_window_counter}"};
  const std::array<int, 6> kPercents{0, 3, 20, 50, 80, 100};
  constexpr size_t kUsers = 8;
  base::Random random(11);
  for (int round = 0; round < 40; ++round) {
    Instance rolled;
    std::array<Instance, kUsers> plain;
    std::array<bool, kUsers> is_in{};
    Instant now = kStart;
    const std::string& own = kOwn[random.Below(kOwn.size())];
    const std::string& next = kNew[random.Below(kNew.size())];
    const std::string next_as_own = "  " + next + "\n";
    rolled.Publish(own, now);
    for (Instance& one : plain) one.Publish(own, now);
    for (int step = 0; step < 60; ++step) {
      now = now + base::Duration(1 + static_cast<int64_t>(random.Below(4'000'000'000)));
      if (random.Below(3) == 0) {
        const int percent = kPercents[random.Below(kPercents.size())];
        rolled.Publish(percent == 0 ? own
                                    : own + "  rollout: {percent: " + std::to_string(percent) +
                                          ", " + next + "}\n",
                       now);
        for (size_t i = 0; i < kUsers; ++i) {
          const std::string user = "u" + std::to_string(i);
          const rule::Entry entry{"user", user};
          const rule::Descriptor descriptor{.entries = {&entry, 1}, .cost = 0};
          ASSERT_TRUE(rolled.checker
                          .Check({.domain = "d",
                                  .descriptors = {&descriptor, 1},
                                  .operation = Operation::kPeek},
                                 rolled.response, now)
                          .ok());
          // The numbers of all limits differ.
          const algorithm::Limit& limit = *rolled.response.descriptors[0].limit;
          is_in[i] = limit.spec().requests != 20 && limit.spec().requests != 5;
          plain[i].Publish(is_in[i] ? next_as_own : own, now);
        }
      }
      for (size_t i = 0; i < kUsers; ++i) {
        for (uint64_t takes = random.Below(4) * random.Below(4); takes > 0; --takes) {
          const std::string user = "u" + std::to_string(i);
          ASSERT_EQ(rolled.Take(user, now), plain[i].Take(user, now))
              << "round " << round << " step " << step << ' ' << user << " in " << is_in[i];
        }
      }
    }
  }
}

TEST_F(RolloutTest, WithMoreLimitsALimitOfTheSamePeriodStaysUsed) {
  const std::string day = "{requests_per_unit: 100, period: 24h, algorithm: token_bucket}";
  const std::string own = "  rate_limit: " + day + "\n";
  const std::string more =
      "rate_limits: [{requests_per_unit: 30, period: 1s, algorithm: token_bucket}, " + day + "]";
  const std::string& rollout = own + "  rollout: {percent: 100, " + more + "}\n";
  for (const std::string& next : {rollout, "  " + more + "\n"}) {
    Publish(own);
    ASSERT_TRUE(Ask(next, Operation::kTake, kStart, 99));
    Publish(next);
    EXPECT_TRUE(Take(next));
    EXPECT_FALSE(Take(next));
    Publish(own);
    EXPECT_FALSE(Take(next)) << "100 of 100 were used";
  }
}

// Many percentages divide the keys into parts; there is a bound on them.
TEST_F(RolloutTest, HoldsForTheRightKeysAfterManyPercentages) {
  std::vector<std::string> users;
  for (int i = 0; i < 300; ++i) users.push_back("u" + std::to_string(i));
  std::array<size_t, 101> inside{};
  for (int percent = 1; percent <= 100; ++percent) {
    Publish(Percent(std::to_string(percent)));
    for (const std::string& user : users)
      inside[static_cast<size_t>(percent)] += LimitOf(user) == 20 ? 1u : 0u;
    EXPECT_GE(inside[static_cast<size_t>(percent)], inside[static_cast<size_t>(percent) - 1]);
  }
  EXPECT_EQ(inside[100], users.size());
  for (int percent = 99; percent >= 1; --percent) {
    Publish(Percent(std::to_string(percent)));
    size_t count = 0;
    for (const std::string& user : users) count += LimitOf(user) == 20 ? 1u : 0u;
    EXPECT_EQ(count, inside[static_cast<size_t>(percent)]) << percent;
  }
}

TEST_F(RolloutTest, InShadowItNeverDeniesAndCountsTheDifference) {
  Publish(Shadow(3));
  for (int i = 0; i < 12; ++i) EXPECT_EQ(Take("ann"), i < 10) << i;
  EXPECT_EQ(response_.descriptors[0].limit->spec().requests, 10u);
  EXPECT_EQ(observer_.compared[1][1], 3u);
  EXPECT_EQ(observer_.compared[1][0], 7u);
  EXPECT_EQ(observer_.compared[0][0], 2u);
  EXPECT_EQ(observer_.compared[0][1], 0u);
  EXPECT_EQ(observer_.decisions, 12u);
}

TEST_F(RolloutTest, InShadowItMayAllowWhatTheRuleDenies) {
  Publish(Shadow(30));
  for (int i = 0; i < 15; ++i) (void)Take("ann");
  EXPECT_EQ(observer_.compared[1][1], 10u);
  EXPECT_EQ(observer_.compared[0][1], 5u);
}

TEST_F(RolloutTest, InShadowAPeekTakesNothingAndARefundGoesToBoth) {
  Publish(Shadow(3));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Take("ann"));
  (void)Ask("ann", Operation::kPeek, kStart, 5);
  (void)Ask("ann", Operation::kRefund, kStart, 1);
  EXPECT_EQ(Remaining("ann"), 8u);
  EXPECT_TRUE(Take("ann"));
  EXPECT_EQ(observer_.compared[1][1], 4u);
  (void)Ask("ann", Operation::kReset, kStart, 1);
  EXPECT_TRUE(Take("ann"));
  EXPECT_EQ(observer_.compared[1][1], 5u);
}

TEST_F(RolloutTest, AnUnlimitedRuleCanTryALimitInShadow) {
  Publish(
      "  rate_limit: {unlimited: true}\n"
      "  rollout: {shadow: true, rate_limit: {unit: day, requests_per_unit: 2}}\n");
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Take("ann"));
  EXPECT_EQ(response_.descriptors[0].outcome, Outcome::kUnlimited);
  EXPECT_EQ(observer_.compared[1][1], 2u);
  EXPECT_EQ(observer_.compared[1][0], 3u);
}

TEST_F(RolloutTest, InAnAllOrNothingDomainShadowConsumesNothingOfADeniedRequest) {
  Publish(Shadow(30), kStart, "all_or_nothing: true\n");
  for (int i = 0; i < 15; ++i) (void)Take("ann");
  EXPECT_EQ(observer_.compared[1][1], 10u);
  EXPECT_EQ(observer_.compared[0][1], 5u);
}

}  // namespace rollout_test
}  // namespace headgate::limiter
