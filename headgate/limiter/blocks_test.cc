// Rules that block keys, as a front sees them. The definition is tested in algorithm/block_test.cc.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "headgate/base/hash_rig.h"
#include "headgate/limiter/checker.h"
#include "headgate/limiter/shared/local_shares.h"
#include "headgate/rule/read/load.h"
#include "headgate/store/memory.h"

namespace headgate::limiter {
namespace blocks_test {

using base::Duration;
using base::Instant;
using namespace std::chrono_literals;

constexpr Instant kStart = Instant::FromNanos(1'790'000'000'000'000'000);

class CountingObserver final : public Observer {
 public:
  uint32_t OnRule(const rule::Rule&) override { return 0; }
  void OnDecision(uint32_t, const DecisionEvent& event) override {
    ++outcomes[static_cast<size_t>(event.outcome)];
  }
  void OnOwnLimits(uint32_t, Outcome, uint64_t) override {}
  uint64_t Count(Outcome outcome) const { return outcomes[static_cast<size_t>(outcome)]; }

  std::array<uint64_t, kOutcomeCount> outcomes{};
};

class BlocksTest : public ::testing::Test {
 protected:
  void Publish(const std::string& rules, Duration at = 0s) {
    const rule::read::RuleFile file{.name = "f", .text = "domain: d\n" + rules};
    const rule::read::LoadResult loaded = rule::read::LoadRules({&file, 1});
    ASSERT_TRUE(loaded.ok()) << rule::Describe(loaded.problems);
    rules_ = loaded.rules;
    ASSERT_TRUE(limiter_.OnRules(rules_, kStart + at).ok());
  }
  bool Ask(const std::vector<std::string>& keys, Duration at,
           Operation operation = Operation::kTake, uint64_t cost = 1) {
    std::vector<rule::Entry> entries;
    for (const std::string& key : keys) entries.emplace_back(key, "ann");
    std::vector<rule::Descriptor> descriptors;
    for (const rule::Entry& entry : entries)
      descriptors.push_back({.entries = {&entry, 1}, .cost = cost});
    EXPECT_TRUE(checker_
                    .Check({.domain = "d", .descriptors = descriptors, .operation = operation},
                           response_, kStart + at)
                    .ok());
    return response_.allowed;
  }
  const DescriptorAnswer& answer(size_t i = 0) const { return response_.descriptors[i]; }

  store::MemoryStore store_{{.max_buckets = 1000, .secret = base::SecretFromSeed(1)}};
  std::shared_ptr<const rule::RuleSet> rules_;
  CountingObserver observer_;
  Limiter limiter_{store_, &observer_};
  Checker checker_{limiter_};
  Response response_;
};

constexpr const char* kLogin =
    "descriptors:\n- key: login\n"
    "  rate_limit: {period: 20s, requests_per_unit: 1, block: 10m}\n";

TEST_F(BlocksTest, HaveAnOutcomeOfTheirOwn) {
  Publish(kLogin);
  EXPECT_TRUE(Ask({"login"}, 0s));
  EXPECT_FALSE(Ask({"login"}, 0s));
  EXPECT_EQ(answer().outcome, Outcome::kBlocked);
  EXPECT_EQ(answer().decision.retry_after, 10min);
  EXPECT_FALSE(Ask({"login"}, 9min));
  EXPECT_EQ(answer().decision.retry_after, 1min);
  EXPECT_TRUE(Ask({"login"}, 10min));
  EXPECT_EQ(observer_.Count(Outcome::kAllowed), 2u);
  EXPECT_EQ(observer_.Count(Outcome::kBlocked), 2u);
  EXPECT_EQ(observer_.Count(Outcome::kDenied), 0u);
}

TEST_F(BlocksTest, AreShownByAPeekThatBeginsNone) {
  Publish(kLogin);
  EXPECT_TRUE(Ask({"login"}, 0s));
  EXPECT_FALSE(Ask({"login"}, 0s, Operation::kPeek));
  EXPECT_EQ(answer().decision.retry_after, 20s);
  EXPECT_TRUE(Ask({"login"}, 20s));
  EXPECT_FALSE(Ask({"login"}, 20s));
  EXPECT_FALSE(Ask({"login"}, 80s, Operation::kPeek));
  EXPECT_EQ(answer().decision.blocked_for, 9min);
  Ask({"login"}, 80s, Operation::kReset, 0);
  EXPECT_TRUE(Ask({"login"}, 80s));
}

TEST_F(BlocksTest, BeginInShadowToo) {
  Publish(std::string(kLogin) + "  shadow_mode: true\n");
  EXPECT_TRUE(Ask({"login"}, 0s));
  EXPECT_TRUE(Ask({"login"}, 0s));
  EXPECT_TRUE(Ask({"login"}, 9min));
  EXPECT_EQ(observer_.Count(Outcome::kShadowDenied), 2u);
  EXPECT_TRUE(Ask({"login"}, 10min));
  EXPECT_EQ(observer_.Count(Outcome::kAllowed), 2u);
  // Enforced for the rest of its time.
  EXPECT_TRUE(Ask({"login"}, 11min));
  EXPECT_TRUE(Ask({"login"}, 11min));
  Publish(kLogin, 12min);
  EXPECT_FALSE(Ask({"login"}, 12min));
  EXPECT_EQ(answer().decision.retry_after, 9min);
}

TEST_F(BlocksTest, BeginInPassthroughToo) {
  Publish(kLogin);
  limiter_.SetPassthrough(true);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Ask({"login"}, 0s));
  EXPECT_EQ(observer_.Count(Outcome::kBlocked), 4u);
  limiter_.SetPassthrough(false);
  EXPECT_FALSE(Ask({"login"}, 1s));
}

TEST_F(BlocksTest, TheDenyingRuleOfAGroupBlocksItsKeyAndTheOthersTakeNothing) {
  Publish("all_or_nothing: true\n" + std::string(kLogin) +
          "- key: all\n  rate_limit: {unit: hour, requests_per_unit: 5, block: 1h}\n");
  EXPECT_TRUE(Ask({"all", "login"}, 0s));
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(Ask({"all", "login"}, 1s));
  EXPECT_EQ(answer(1).outcome, Outcome::kBlocked);
  EXPECT_TRUE(Ask({"all"}, 1s, Operation::kPeek, 4));  // nothing was taken from it
  EXPECT_FALSE(answer().decision.blocked());
  EXPECT_FALSE(Ask({"login"}, 599s));
}

TEST_F(BlocksTest, EndWithTheirRule) {
  Publish(kLogin);
  EXPECT_TRUE(Ask({"login"}, 0s));
  EXPECT_FALSE(Ask({"login"}, 0s));
  Publish("descriptors:\n- key: login\n  rate_limit: {period: 20s, requests_per_unit: 1}\n", 30s);
  EXPECT_TRUE(Ask({"login"}, 30s));
  Publish(kLogin, 31s);
  EXPECT_FALSE(Ask({"login"}, 40s));
  EXPECT_FALSE(Ask({"login"}, 639s));
  EXPECT_TRUE(Ask({"login"}, 700s));
}

// Each limit has the bucket of its place, the longest period first.
TEST_F(BlocksTest, EndIfALimitWithALongerPeriodComesBefore) {
  const auto with = [](std::string_view period) {
    return "descriptors:\n- key: login\n  rate_limits:\n"
           "  - {period: 20s, requests_per_unit: 1, block: 10m}\n  - {period: " +
           std::string(period) + ", requests_per_unit: 1000}\n";
  };
  for (const auto& [period, stays] : {std::pair("1s", true), std::pair("1h", false)}) {
    Publish(kLogin);
    Ask({"login"}, 0s, Operation::kReset);
    EXPECT_TRUE(Ask({"login"}, 0s));
    EXPECT_FALSE(Ask({"login"}, 0s));
    Publish(with(period), 1s);
    EXPECT_EQ(Ask({"login"}, 30s), !stays) << period;
  }
}

TEST_F(BlocksTest, SurviveARestartFromASnapshot) {
  Publish(kLogin);
  EXPECT_TRUE(Ask({"login"}, 0s));
  EXPECT_FALSE(Ask({"login"}, 0s));
  store::MemoryStore restarted{{.max_buckets = 1000, .secret = base::SecretFromSeed(2)}};
  ASSERT_TRUE(restarted.Restore(store_.Snapshot(kStart + 5min), kStart + 5min).ok());
  Limiter limiter{restarted, &observer_};
  Checker checker{limiter};
  ASSERT_TRUE(limiter.OnRules(rules_, kStart + 5min).ok());
  const rule::Entry entry{"login", "ann"};
  const rule::Descriptor descriptor{.entries = {&entry, 1}};
  EXPECT_TRUE(
      checker.Check({.domain = "d", .descriptors = {&descriptor, 1}}, response_, kStart + 6min)
          .ok());
  EXPECT_FALSE(response_.allowed);
  EXPECT_EQ(answer().decision.retry_after, 4min);
}

TEST(BlocksOfAnOutage, DoNotBegin) {
  algorithm::LimitSpec spec{.requests = 10, .period = 1s};
  spec.block.Add(algorithm::BlockLengths::Seconds(60));
  EXPECT_TRUE(shared::PartOf(spec, {1, 2}).block.empty());
  EXPECT_TRUE(shared::PartOf(spec, {1, 1}).block.empty());
}

}  // namespace blocks_test
}  // namespace headgate::limiter
