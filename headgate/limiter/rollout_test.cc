// Roll-outs: new limits for a part of the keys, or in shadow beside the rule's own.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

#include "headgate/base/hash_rig.h"
#include "headgate/limiter/checker.h"
#include "headgate/rule/load.h"
#include "headgate/store/memory.h"

namespace headgate::limiter {
namespace {

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
    const rule::RuleFile file{.name = "f",
                              .text = "domain: d\n" + head + "descriptors:\n- key: user\n" + lines};
    const rule::LoadResult loaded = rule::LoadRules({&file, 1});
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
  const rule::RuleFile file{.name = "g",
                            .text = "domain: d\ndescriptors:\n- key: user\n" + Percent("50")};
  ASSERT_TRUE(other.OnRules(rule::LoadRules({&file, 1}).rules, kStart).ok());
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

}  // namespace
}  // namespace headgate::limiter
