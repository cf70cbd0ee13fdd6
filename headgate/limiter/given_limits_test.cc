// Limits that requests bring for their rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <array>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "headgate/base/check.h"
#include "headgate/base/hash_rig.h"
#include "headgate/limiter/checker.h"
#include "headgate/limiter/lease/lease_books.h"
#include "headgate/limiter/shared/shared_decider.h"
#include "headgate/rule/read/load.h"
#include "headgate/store/memory.h"
#include "headgate/testing/manual_shared_store.h"

namespace headgate::limiter {
namespace given_limits_test {

using base::Instant;
using namespace std::chrono_literals;

constexpr Instant kBegin = Instant::FromNanos(1'790'000'000'000'000'000);

class GivenObserver final : public Observer {
 public:
  uint32_t OnRule(const rule::Rule&) override { return 0; }
  void OnDecision(uint32_t, const DecisionEvent&) override {}
  void OnOwnLimits(uint32_t, Outcome, uint64_t) override {}
  void OnGivenLimit(uint32_t, rule::Given given) override { ++kinds[static_cast<size_t>(given)]; }

  std::array<uint64_t, rule::kGivenKinds> kinds{};
};

enum class Kind : uint8_t { kMemory, kShared, kLeased };

// One rule `user` with these words of its limit, in memory or with a shared store.
struct GivenRig {
  explicit GivenRig(std::string_view words, Kind kind = Kind::kMemory) {
    if (kind != Kind::kMemory) {
      shared.emplace(store, kBegin);
      if (kind == Kind::kLeased)
        leases.emplace(lease::LeaseBookOptions{.node = 1, .keys_max = 64}, 1);
      decider.emplace(*shared, store,
                      shared::SharedDeciderOptions{.leases = leases ? &*leases : nullptr});
      checker.emplace(limiter, 0, *decider, BucketNaming{});
    } else {
      checker.emplace(limiter);
    }
    SetRule(fmt::format("rate_limit: {{{}}}", words));
  }
  void SetRule(std::string_view limits) {
    const std::vector<rule::read::RuleFile> files{
        {.name = "f.yaml",
         .text = fmt::format("domain: d\ndescriptors:\n- key: user\n  {}\n", limits)}};
    const rule::read::LoadResult loaded = rule::read::LoadRules(files);
    HEADGATE_CHECK(loaded.ok());
    HEADGATE_CHECK(limiter.OnRules(loaded.rules, now).ok());
  }

  algorithm::Decision Ask(std::string_view given, std::string_view user = "ann",
                          Operation operation = Operation::kTake) {
    const rule::Entry entry{.key = "user", .value = user};
    const rule::Descriptor descriptor{.entries = {&entry, 1}, .given_limit = given};
    const Request request{.domain = "d", .descriptors = {&descriptor, 1}, .operation = operation};
    Response response;
    Question question([] {});
    EXPECT_TRUE(checker->Check(request, response, now, &question).ok());
    if (response.waiting) {
      shared->AnswerAll();
      EXPECT_TRUE(checker->Continue(question, response, now).ok());
    }
    EXPECT_FALSE(response.waiting);
    return response.descriptors[0].decision;
  }
  // How many of many requests pass now.
  uint64_t Passing(std::string_view given, std::string_view user = "ann") {
    uint64_t passed = 0;
    while (Ask(given, user).allowed) ++passed;
    return passed;
  }

  Instant now = kBegin;
  store::MemoryStore store{{.max_buckets = 1 << 12, .secret = base::SecretFromSeed(1)}};
  GivenObserver observer;
  Limiter limiter{store, &observer};
  std::optional<testing::ManualSharedStore> shared;
  std::optional<lease::LeaseBooks> leases;
  std::optional<shared::SharedDecider> decider;
  std::optional<Checker> checker;
};

constexpr std::string_view kPlans =
    "unit: hour, requests_per_unit: 5, algorithm: fixed_window, max: 50, plans: {free: 5, gold: "
    "20}";

class GivenLimit : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Stores, GivenLimit,
                         ::testing::Values(Kind::kMemory, Kind::kShared, Kind::kLeased));

TEST_P(GivenLimit, IsThatOfThePlanOrTheNumber) {
  GivenRig rig(kPlans, GetParam());
  EXPECT_EQ(rig.Passing("gold", "a"), 20u);
  EXPECT_EQ(rig.Passing("free", "b"), 5u);
  EXPECT_EQ(rig.Passing("7", "c"), 7u);
  EXPECT_EQ(rig.Passing("50", "d"), 50u);
  EXPECT_EQ(rig.Ask("gold", "e").limit, 20u);
}

TEST_P(GivenLimit, IsBoundedByTheRule) {
  GivenRig rig(kPlans, GetParam());
  EXPECT_EQ(rig.Passing("51", "a"), 50u);
  EXPECT_EQ(rig.Passing("99999999999999999999999999999999", "b"), 50u);
  EXPECT_EQ(rig.Passing("0", "c"), 0u) << "a limit of 0 denies";
}

TEST_P(GivenLimit, ThatIsNoneLeavesTheRulesOwn) {
  GivenRig rig(kPlans, GetParam());
  int user = 0;
  for (const std::string_view given :
       {"", "Gold", "gold ", "platinum", "-1", "+7", "7.5", "1e3", "0x10", "007", "7 ", "true"})
    EXPECT_EQ(rig.Passing(given, std::to_string(user++)), 5u) << given;
}

TEST_P(GivenLimit, HasNoMeaningForARuleThatDoesNotSaySo) {
  GivenRig rig("unit: hour, requests_per_unit: 5, algorithm: fixed_window", GetParam());
  EXPECT_EQ(rig.Passing("1000"), 5u);
  GivenRig plans("unit: hour, requests_per_unit: 5, algorithm: fixed_window, plans: {gold: 9}",
                 GetParam());
  EXPECT_EQ(plans.Passing("1000"), 5u) << "no number without max";
  EXPECT_EQ(plans.Passing("gold", "b"), 9u);
}

TEST_P(GivenLimit, OfAnotherPlanIsAboutTheSameBucket) {
  GivenRig rig(kPlans, GetParam());
  EXPECT_EQ(rig.Passing("gold"), 20u);
  EXPECT_EQ(rig.Passing("free"), 0u);
  EXPECT_EQ(rig.Passing("50"), 30u) << "a raise gives the difference";
  EXPECT_EQ(rig.Passing("gold"), 0u);
  EXPECT_EQ(rig.Passing("50"), 0u);
}

// Whatever plans a client names in whatever order, it never passes more than with the best of them
// all the time.
TEST_P(GivenLimit, ChangingBetweenPlansGainsNothing) {
  for (const std::string_view algorithm :
       {"token_bucket", "token_bucket, burst: 7", "leaky_bucket", "fixed_window",
        "fixed_window, align: first_hit", "sliding_window_counter", "sliding_window_log"}) {
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      GivenRig rig(fmt::format("period: 10s, requests_per_unit: 3, algorithm: {}, max: 12,"
                               " plans: {{low: 3, high: 10}}",
                               algorithm),
                   GetParam());
      std::mt19937_64 random(seed);
      uint64_t changing = 0;
      uint64_t best = 0;
      for (int i = 0; i < 600; ++i) {
        rig.now += std::chrono::milliseconds(random() % (i % 100 < 50 ? 100 : 1500));
        constexpr std::array<std::string_view, 6> kTexts = {"low", "high", "12", "", "0", "4"};
        const std::string_view text = kTexts[random() % kTexts.size()];
        changing += rig.Ask(text, "changing").allowed ? 1u : 0u;
        best += rig.Ask("12", "best").allowed ? 1u : 0u;
        ASSERT_LE(changing, best) << algorithm << ", seed " << seed << ", request " << i;
      }
      EXPECT_GT(changing, 0u) << algorithm;
    }
  }
}

TEST(GivenLimits, BurstKeepsItsRatio) {
  GivenRig rig("unit: hour, requests_per_unit: 10, burst: 3, max: 1000, plans: {gold: 100}");
  EXPECT_EQ(rig.Passing("", "a"), 3u);
  EXPECT_EQ(rig.Passing("gold", "b"), 30u);
  EXPECT_EQ(rig.Passing("15", "c"), 5u) << "4.5, rounded up";
  EXPECT_EQ(rig.Passing("1", "d"), 1u);
}

TEST(GivenLimits, EachLimitOfARuleHasItsPlans) {
  GivenRig rig(kPlans);
  rig.SetRule(
      "rate_limits:\n"
      "  - {unit: hour, requests_per_unit: 5, algorithm: fixed_window, plans: {gold: 20}}\n"
      "  - {unit: day, requests_per_unit: 9, algorithm: fixed_window, max: 100, plans: {gold: "
      "30}}");
  EXPECT_EQ(rig.Passing("gold", "a"), 20u);
  EXPECT_EQ(rig.Passing("3", "b"), 3u) << "the number is for the day, and for the hour it is 5";
  rig.now += 1h;
  EXPECT_EQ(rig.Passing("gold", "a"), 10u);
}

TEST(GivenLimits, AreCounted) {
  GivenRig rig(kPlans);
  rig.Ask("gold");
  rig.Ask("7");
  rig.Ask("700");
  rig.Ask("x");
  rig.Ask("y");
  rig.Ask("");
  EXPECT_EQ(rig.observer.kinds, (std::array<uint64_t, rule::kGivenKinds>{1, 1, 1, 2}));
}

TEST(GivenLimits, OfManyNumbersNeedNoMoreMemoryThanTheirBound) {
  GivenRig rig("unit: hour, requests_per_unit: 1, algorithm: fixed_window, max: 4000000000");
  for (int i = 1; i < 20'000; ++i) rig.Ask(std::to_string(i));
  EXPECT_EQ(rig.Passing("1", "b"), 1u);
  EXPECT_EQ(rig.Passing("20005"), 6u) << "19,999 have passed, each below its own number";
}

TEST(GivenLimits, StayWhenTheRuleIsReplaced) {
  GivenRig rig(kPlans);
  EXPECT_EQ(rig.Passing("gold"), 20u);
  rig.SetRule(
      "rate_limit: {unit: hour, requests_per_unit: 6, algorithm: fixed_window, max: 50, "
      "plans: {gold: 25}}");
  EXPECT_EQ(rig.Passing("gold"), 5u);
  EXPECT_EQ(rig.Passing("free"), 0u) << "25 of 6 are used";
}

}  // namespace given_limits_test
}  // namespace headgate::limiter
