// Limits with a cost by size, as a front asks about them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "headgate/limiter/checker.h"
#include "headgate/rule/read/load.h"
#include "headgate/store/memory.h"

namespace headgate::limiter {
namespace request_sizes_test {

using namespace std::chrono_literals;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::string_view kBytes =
    "{unit: hour, requests_per_unit: 100, cost: {of: response_bytes, per: 1KiB, reserve: 4KiB}}";

struct SizesTest : ::testing::Test {
  // A rule for each value of the key `k`.
  void SetRule(const std::string& words, const std::string& top = "") {
    const std::vector<rule::read::RuleFile> files{
        {.name = "f.yaml", .text = "domain: d\n" + top + "descriptors:\n- key: k\n" + words}};
    const rule::read::LoadResult rules = rule::read::LoadRules(files);
    ASSERT_TRUE(rules.ok()) << rule::Describe(rules.problems);
    ASSERT_TRUE(limiter.OnRules(rules.rules, now).ok());
  }
  void SetLimit(std::string_view limit) { SetRule("  rate_limit: " + std::string(limit) + "\n"); }
  Response& Ask(std::optional<uint64_t> cost = {}, Operation operation = Operation::kTake,
                std::optional<uint64_t> request_bytes = {}) {
    const rule::Descriptor descriptor{.entries = {&entry, 1}, .cost = cost};
    EXPECT_TRUE(checker
                    .Check({.domain = "d",
                            .descriptors = {&descriptor, 1},
                            .operation = operation,
                            .request_bytes = request_bytes},
                           response, now)
                    .ok());
    return response;
  }
  uint64_t Left() { return Ask(0, Operation::kPeek).descriptors[0].decision.remaining; }
  std::vector<SizeCharge> Charges() {
    const rule::Descriptor descriptor{.entries = {&entry, 1}};
    return KeepCharges({.domain = "d", .descriptors = {&descriptor, 1}}, response);
  }
  // The mode in which the last step was done.
  Mode Correct(SizeCharge& charge, uint64_t bytes) {
    Mode mode = Mode::kOpen;
    for (SizeStep step = charge.StepTo(bytes); step.cost > 0; step = charge.StepTo(bytes)) {
      const Settled settled = checker.Correct(charge, step, now, nullptr).settled;
      charge.OnStep(step, settled);
      mode = settled.mode;
    }
    return mode;
  }
  // Makes the key's bucket owe `units` beyond its limit of 100.
  void Overdraw(uint64_t units) {
    Ask();
    ASSERT_THAT(response.sized, SizeIs(1));
    SizeCharge charge = Charges().at(0);
    EXPECT_EQ(Correct(charge, (100 + units) * 1024), Mode::kMemory);
  }

  base::Instant now = base::Instant::FromNanos(1'790'000'000'000'000'000);
  store::MemoryStore store{{.max_buckets = 1 << 10}};
  Limiter limiter{store, nullptr};
  Checker checker{limiter};
  Response response;
  const rule::Entry entry{.key = "k", .value = "v"};
};

TEST_F(SizesTest, TheReserveIsTheCost) {
  SetLimit(kBytes);
  EXPECT_TRUE(Ask().allowed);
  EXPECT_EQ(Left(), 96u);
}

TEST_F(SizesTest, AStatedCostIsTaken) {
  SetLimit(kBytes);
  Ask(7);
  EXPECT_THAT(response.sized, IsEmpty()) << "nobody corrects it";
  EXPECT_EQ(Left(), 93u);
}

TEST_F(SizesTest, ARefundGivesTheReserveBack) {
  SetLimit(kBytes);
  Ask();
  Ask({}, Operation::kRefund);
  EXPECT_THAT(response.sized, IsEmpty());
  EXPECT_EQ(Left(), 100u);
}

TEST_F(SizesTest, APeekTakesNothing) {
  SetLimit(kBytes);
  Ask({}, Operation::kPeek);
  EXPECT_THAT(response.sized, IsEmpty());
  EXPECT_EQ(Left(), 100u);
}

TEST_F(SizesTest, AKnownSizeOfTheRequestIsTakenAtOnce) {
  SetLimit("{unit: hour, requests_per_unit: 100, cost: {of: request_bytes, per: 1KiB}}");
  Ask({}, Operation::kTake, 10'000);
  EXPECT_EQ(Left(), 90u);
  Ask({}, Operation::kTake, 0);
  EXPECT_EQ(Left(), 90u);
  EXPECT_EQ(Ask({}, Operation::kTake, 200'000).descriptors[0].outcome, Outcome::kNeverFits);
  EXPECT_THAT(response.sized, IsEmpty());
}

TEST_F(SizesTest, ItSaysWhatMayBeCorrected) {
  SetLimit(kBytes);
  Ask();
  ASSERT_THAT(response.sized, SizeIs(1));
  EXPECT_EQ(response.sized[0].taken, 4u);
  EXPECT_EQ(response.sized[0].cost.per_bytes, 1024u);
  SizeCharge charge = Charges().at(0);
  EXPECT_EQ(Correct(charge, 10'240), Mode::kMemory);
  EXPECT_EQ(Left(), 90u);
  EXPECT_EQ(Correct(charge, 1), Mode::kMemory);
  EXPECT_EQ(Left(), 99u);
}

TEST_F(SizesTest, OnlyLimitsWithACostBySizeAreCorrected) {
  SetRule("  rate_limits:\n  - {unit: day, requests_per_unit: 5}\n  - " + std::string(kBytes) +
          "\n");
  Ask();
  ASSERT_THAT(response.sized, SizeIs(1));
  EXPECT_EQ(response.sized[0].limit_index, 1u) << "the longer period comes first";
  for (int i = 0; i < 4; ++i) Ask();
  EXPECT_FALSE(Ask().allowed);
  EXPECT_THAT(response.sized, IsEmpty()) << "the other limit denied, so nothing was taken";
}

TEST_F(SizesTest, ARollOutHasItsOwnCost) {
  SetRule(
      "  rate_limit: {unit: hour, requests_per_unit: 100}\n"
      "  rollout:\n    shadow: true\n    rate_limit: " +
      std::string(kBytes) + "\n");
  Ask();
  ASSERT_THAT(response.sized, SizeIs(1));
  EXPECT_EQ(response.sized[0].limit_index, rule::kLimitsPerRuleMax);
  SizeCharge charge = Charges().at(0);
  EXPECT_EQ(Correct(charge, 5 * 1024), Mode::kMemory);
  EXPECT_EQ(Left(), 99u) << "the rule counts requests";
}

TEST_F(SizesTest, ALimitThatIsGoneIsNotCorrected) {
  SetLimit(kBytes);
  Ask();
  SizeCharge charge = Charges().at(0);
  SetLimit("{unit: hour, requests_per_unit: 100}");
  EXPECT_EQ(Correct(charge, 0), Mode::kClosed);
  EXPECT_EQ(Left(), 96u);
}

// Both limits decide how much has come back by itself since the take.
TEST_F(SizesTest, ALimitThatHasChangedIsChargedButGetsNothingBack) {
  SetLimit(kBytes);
  Ask();
  SizeCharge less = Charges().at(0);
  Ask();
  SizeCharge more = Charges().at(0);
  SetLimit(
      "{unit: hour, requests_per_unit: 200, cost: {of: response_bytes, per: 1KiB, reserve: 4KiB}}");
  const uint64_t left = Left();
  EXPECT_EQ(Correct(less, 0), Mode::kClosed);
  EXPECT_EQ(Left(), left);
  EXPECT_EQ(Correct(more, 6 * 1024), Mode::kMemory);
  EXPECT_EQ(Left(), left - 2);
}

TEST_F(SizesTest, AnOverdrawnBucketDeniesAndNothingIsTaken) {
  SetRule("  rate_limits:\n  - {unit: day, requests_per_unit: 5, algorithm: fixed_window}\n  - " +
          std::string(kBytes) + "\n");
  Overdraw(10);
  EXPECT_FALSE(Ask().allowed);
  const algorithm::Decision& decision = response.descriptors[0].decision;
  EXPECT_EQ(response.descriptors[0].outcome, Outcome::kDenied);
  EXPECT_EQ(decision.remaining, 0u);
  EXPECT_TRUE(decision.overdrawn);
  EXPECT_EQ(decision.retry_after, (10 + 4) * 36s) << "what is owed, and then the reserve";
  EXPECT_FALSE(Ask(1).allowed) << "so is a request that states its cost";
  now += 14 * 36s;
  EXPECT_TRUE(Ask().allowed);
  EXPECT_EQ(response.sized.size(), 1u);
}

// As if the rule denied in earnest: nothing is taken from any of its limits.
TEST_F(SizesTest, ARuleInShadowTakesNothingWhileItIsOverdrawn) {
  SetRule(
      "  shadow_mode: true\n  rate_limits:\n"
      "  - {unit: day, requests_per_unit: 5, algorithm: fixed_window}\n  - " +
      std::string(kBytes) + "\n");
  Overdraw(10);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(Ask().allowed);
    EXPECT_THAT(response.sized, IsEmpty());
    EXPECT_EQ(response.descriptors[0].outcome, Outcome::kShadowDenied);
    EXPECT_EQ(response.descriptors[0].decision.retry_after, 14 * 36s);
  }
  now += 14 * 36s;
  EXPECT_TRUE(Ask().allowed);
  EXPECT_EQ(response.descriptors[0].outcome, Outcome::kAllowed) << "neither limit has counted them";
  EXPECT_THAT(response.sized, SizeIs(1));
}

// The roll-out is overdrawn, the rule is not.
TEST_F(SizesTest, ARollOutInShadowTakesNothingWhileItIsOverdrawn) {
  SetRule(
      "  rate_limit: {unit: hour, requests_per_unit: 100}\n"
      "  rollout:\n    shadow: true\n    rate_limit: " +
      std::string(kBytes) + "\n");
  Overdraw(10);
  EXPECT_TRUE(Ask().allowed);
  EXPECT_EQ(response.descriptors[0].outcome, Outcome::kAllowed);
  EXPECT_THAT(response.sized, IsEmpty());
  EXPECT_EQ(Left(), 98u) << "the rule counts both requests";
}

TEST_F(SizesTest, AQuotaThatIsOverdrawnTakesNothing) {
  SetRule("  quota_mode: true\n  rate_limit: " + std::string(kBytes) + "\n");
  Overdraw(10);
  EXPECT_FALSE(Ask().allowed);
  EXPECT_THAT(response.sized, IsEmpty());
  EXPECT_EQ(response.descriptors[0].decision.retry_after, 14 * 36s);
}

// The group denies, so the quota has got its reserve back. It must not get it twice.
TEST_F(SizesTest, AQuotaThatWasGivenBackIsNotCorrected) {
  SetRule("  quota_mode: true\n  rate_limit: " + std::string(kBytes) +
              "\n- key: other\n  rate_limit: {unit: hour, requests_per_unit: 1}\n",
          "all_or_nothing: true\n");
  const rule::Entry other{.key = "other", .value = "v"};
  const rule::Descriptor both[] = {{.entries = {&entry, 1}}, {.entries = {&other, 1}}};
  for (const bool passes : {true, false}) {
    ASSERT_TRUE(checker.Check({.domain = "d", .descriptors = both}, response, now).ok());
    EXPECT_EQ(response.allowed, passes);
    EXPECT_THAT(response.sized, SizeIs(passes ? 1 : 0));
  }
  EXPECT_EQ(Left(), 96u);
}

}  // namespace request_sizes_test
}  // namespace headgate::limiter
