// Limits with a cost by size, as a front asks about them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "headgate/limiter/checker.h"
#include "headgate/rule/load.h"
#include "headgate/store/memory.h"

namespace headgate::limiter {
namespace checker_sizes_test {

using namespace std::chrono_literals;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::string_view kBytes =
    "{unit: hour, requests_per_unit: 100, cost: {of: response_bytes, per: 1KiB, reserve: 4KiB}}";

struct SizesTest : ::testing::Test {
  // A rule for each value of the key `k`.
  void SetRule(const std::string& words, const std::string& top = "") {
    const std::vector<rule::RuleFile> files{
        {.name = "f.yaml", .text = "domain: d\n" + top + "descriptors:\n- key: k\n" + words}};
    const rule::LoadResult rules = rule::LoadRules(files);
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
    return KeepCharges({.domain = "d", .descriptors = {&descriptor, 1}}, response, now);
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
  const SizeCharge::Correction more = charge.CorrectTo(10'240, now);
  EXPECT_EQ(more.missing, 6u);
  const Corrected taken =
      checker.Correct(charge.place(), Operation::kTake, more.missing, now, nullptr);
  EXPECT_TRUE(taken.known && taken.settled.decision.allowed);
  EXPECT_EQ(Left(), 90u);
  const SizeCharge::Correction less = charge.CorrectTo(1, now);
  EXPECT_EQ(less.surplus, 9u);
  EXPECT_EQ(less.returnable, 9u);
  EXPECT_TRUE(
      checker.Correct(charge.place(), Operation::kRefund, less.returnable, now, nullptr).known);
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
  const SizeCharge charge = Charges().at(0);
  EXPECT_TRUE(checker.Correct(charge.place(), Operation::kTake, 1, now, nullptr).known);
  EXPECT_EQ(Left(), 99u) << "the rule counts requests";
}

TEST_F(SizesTest, ALimitThatIsGoneIsNotCorrected) {
  SetLimit(kBytes);
  Ask();
  const SizeCharge charge = Charges().at(0);
  SetLimit("{unit: hour, requests_per_unit: 100}");
  EXPECT_FALSE(checker.Correct(charge.place(), Operation::kRefund, 4, now, nullptr).known);
}

TEST_F(SizesTest, ADebtDeniesItsKeyAndTakesNothing) {
  SetRule("  rate_limits:\n  - {unit: day, requests_per_unit: 5, algorithm: fixed_window}\n  - " +
          std::string(kBytes) + "\n");
  Ask();
  limiter.size_debts().Add(response.sized[0].key, 10);
  limiter.size_debts().Deny(response.sized[0].key, now + 5s);
  EXPECT_FALSE(Ask().allowed);
  const algorithm::Decision& decision = response.descriptors[0].decision;
  EXPECT_EQ(response.descriptors[0].outcome, Outcome::kDenied);
  EXPECT_EQ(decision.remaining, 0u);
  EXPECT_EQ(decision.retry_after, 5s + 4 * 36s) << "the debt, and then the reserve";
  EXPECT_TRUE(Ask(3).allowed) << "a request that states its cost does not depend on sizes";
}

TEST_F(SizesTest, ADebtOfARuleInShadowDeniesNobody) {
  SetRule("  shadow_mode: true\n  rate_limit: " + std::string(kBytes) + "\n");
  Ask();
  limiter.size_debts().Add(response.sized[0].key, 10);
  limiter.size_debts().Deny(response.sized[0].key, now + 5s);
  EXPECT_TRUE(Ask().allowed);
  EXPECT_EQ(response.descriptors[0].outcome, Outcome::kShadowDenied);
}

// As if the rule denied in earnest: nothing is taken from any of its limits.
TEST_F(SizesTest, ARuleInShadowTakesNothingWhileItOwes) {
  SetRule(
      "  shadow_mode: true\n  rate_limits:\n"
      "  - {unit: day, requests_per_unit: 5, algorithm: fixed_window}\n  - " +
      std::string(kBytes) + "\n");
  Ask();
  ASSERT_THAT(response.sized, SizeIs(1));
  const base::Hash128 key = response.sized[0].key;
  EXPECT_EQ(Left(), 4u);
  limiter.size_debts().Add(key, 10);
  limiter.size_debts().Deny(key, now + 5s);
  EXPECT_TRUE(Ask().allowed);
  EXPECT_THAT(response.sized, IsEmpty());
  EXPECT_EQ(response.descriptors[0].outcome, Outcome::kShadowDenied);
  EXPECT_EQ(response.descriptors[0].decision.retry_after, 5s + 4 * 36s);
  EXPECT_EQ(limiter.size_debts().Forget(key), 10u);
  EXPECT_EQ(Left(), 4u) << "neither limit has counted the request";
  EXPECT_TRUE(Ask().allowed);
  EXPECT_THAT(response.sized, SizeIs(1));
  EXPECT_EQ(Left(), 3u);
}

// The roll-out owes, the rule does not.
TEST_F(SizesTest, ARollOutInShadowTakesNothingWhileItOwes) {
  SetRule(
      "  rate_limit: {unit: hour, requests_per_unit: 100}\n"
      "  rollout:\n    shadow: true\n    rate_limit: " +
      std::string(kBytes) + "\n");
  Ask();
  ASSERT_THAT(response.sized, SizeIs(1));
  limiter.size_debts().Add(response.sized[0].key, 10);
  limiter.size_debts().Deny(response.sized[0].key, now + 5s);
  EXPECT_TRUE(Ask().allowed);
  EXPECT_EQ(response.descriptors[0].outcome, Outcome::kAllowed);
  EXPECT_THAT(response.sized, IsEmpty());
  EXPECT_EQ(Left(), 98u) << "the rule counts both requests";
}

// ---- How much of a charge may go back

TEST_F(SizesTest, ABucketKeepsWhatHasComeBackByItself) {
  SetLimit("{unit: minute, requests_per_unit: 60, cost: {of: response_bytes, reserve: 20B}}");
  Ask();
  SizeCharge charge = Charges().at(0);
  const SizeCharge::Correction correction = charge.CorrectTo(5, now + 8s);
  EXPECT_EQ(correction.surplus, 15u);
  EXPECT_EQ(correction.returnable, 12u) << "20 less the 8 that have come back";
}

// 10 units are taken, and 40 more after 5 s; 5 of the first have come back by then.
TEST_F(SizesTest, EachPartOfAChargeHasItsOwnTime) {
  SetLimit("{unit: minute, requests_per_unit: 60, cost: {of: response_bytes, reserve: 10B}}");
  Ask();
  SizeCharge charge = Charges().at(0);
  EXPECT_EQ(charge.CorrectTo(50, now + 5s).missing, 40u);
  const SizeCharge::Correction correction = charge.CorrectTo(0, now + 7s);
  EXPECT_EQ(correction.surplus, 50u);
  EXPECT_EQ(correction.returnable, 43u);
}

TEST_F(SizesTest, NothingGoesBackToALaterWindow) {
  now = base::Instant::FromNanos(1'790'000'040'000'000'000);  // a whole minute
  for (const std::string_view align : {"epoch", "first_hit"}) {
    SetLimit("{unit: minute, requests_per_unit: 60, algorithm: fixed_window, align: " +
             std::string(align) + ", cost: {of: response_bytes, reserve: 20B}}");
    Ask();
    SizeCharge within = Charges().at(0);
    EXPECT_EQ(within.CorrectTo(5, now + 59s).returnable, 15u) << align;
    SizeCharge later = Charges().at(0);
    EXPECT_EQ(later.CorrectTo(5, now + 60s).returnable, 0u) << align;
    EXPECT_EQ(later.CorrectTo(5, now + 60s).surplus, 0u) << "it counts as corrected";
  }
}

}  // namespace checker_sizes_test
}  // namespace headgate::limiter
