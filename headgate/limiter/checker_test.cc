#include "headgate/limiter/checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "headgate/base/hash_rig.h"
#include "headgate/store/memory.h"
#include "headgate/testing/count_allocations.h"

namespace headgate::limiter {
namespace checker_test {

using algorithm::Algorithm;
using algorithm::LimitSpec;
using base::Instant;
using namespace std::chrono_literals;

constexpr Instant kStart = Instant::FromNanos(1'790'000'000'000'000'000);

// Rules that match only a descriptor's first key. The rule format and matching have their own
// tests.
class FirstKeyRules final : public rule::RuleSet {
 public:
  rule::Rule& Add(std::string key, std::initializer_list<LimitSpec> limits) {
    rule::Rule rule;
    rule.index = static_cast<uint32_t>(rules_.size());
    rule.domain = "d";
    rule.path = rule.identity = std::move(key);
    for (const LimitSpec& spec : limits)
      rule.limits.push_back({*algorithm::Limit::Make(spec), std::nullopt});
    rules_.push_back(std::move(rule));
    return rules_.back();
  }

  bool Find(std::string_view domain, std::span<const rule::Entry> entries,
            rule::Match& match) const override {
    match.rule = nullptr;
    match.all_or_nothing = all_or_nothing;
    match.step_count = static_cast<uint32_t>(entries.size());
    for (size_t i = 0; i < entries.size(); ++i) match.steps[i] = {};
    if (domain != "d") return false;
    for (const rule::Rule& rule : rules_) {
      if (!entries.empty() && entries[0].key == rule.path) match.rule = &rule;
    }
    return true;
  }
  std::span<const rule::Rule> rules() const override { return rules_; }

  bool all_or_nothing = false;

 private:
  std::vector<rule::Rule> rules_;
};

class CountingObserver final : public Observer {
 public:
  uint32_t OnRule(const rule::Rule& rule) override { return rule.index + 100; }
  void OnDecision(uint32_t, const DecisionEvent& event) override {
    ++outcomes[static_cast<size_t>(event.outcome)];
    series = event.series;
  }
  void OnOwnLimits(uint32_t, Outcome outcome, uint64_t count) override {
    outcomes[static_cast<size_t>(outcome)] += count;
  }
  uint64_t count(Outcome outcome) const { return outcomes[static_cast<size_t>(outcome)]; }

  std::array<uint64_t, kOutcomeCount> outcomes{};
  uint32_t series = 0;
};

store::MemoryOptions Options() { return {.max_buckets = 1000, .secret = base::SecretFromSeed(1)}; }

// One descriptor of a request: `key=value`, and its optional fields.
struct Ask {
  std::string key;
  std::string value = "v";
  std::optional<uint64_t> cost{};
  std::optional<rule::OverrideLimit> override_limit{};
};

class LimiterTest : public ::testing::Test {
 protected:
  void Publish(const FirstKeyRules& rules, Instant now = kStart) {
    ASSERT_TRUE(limiter.OnRules(std::make_shared<FirstKeyRules>(rules), now).ok());
  }

  absl::Status Call(store::Operation operation, const std::vector<Ask>& asks, Instant now,
                    std::string_view domain = "d") {
    std::deque<rule::Entry> entries;
    std::vector<rule::Descriptor> descriptors;
    for (const Ask& ask : asks) {
      entries.push_back({ask.key, ask.value});
      descriptors.push_back({.entries = {&entries.back(), 1},
                             .cost = ask.cost,
                             .override_limit = ask.override_limit});
    }
    return checker.Check({domain, descriptors, operation}, response, now);
  }
  const Response& Check(const std::vector<Ask>& asks, Instant now = kStart) {
    EXPECT_TRUE(Call(store::Operation::kTake, asks, now).ok());
    return response;
  }
  const Response& Peek(const std::vector<Ask>& asks, Instant now = kStart) {
    EXPECT_TRUE(Call(store::Operation::kPeek, asks, now).ok());
    return response;
  }
  uint64_t Remaining(const std::string& key, Instant now = kStart, const std::string& value = "v") {
    return Peek({{key, value}}, now).descriptors[0].decision.remaining;
  }

  store::MemoryStore store{Options()};
  CountingObserver observer;
  Limiter limiter{store, &observer};
  Checker checker{limiter};
  Response response;
};

TEST_F(LimiterTest, RefusesInvalidRequests) {
  EXPECT_EQ(Call(store::Operation::kTake, {{"a"}}, kStart).message(),
            "no rate limit configuration loaded");
  Publish({});
  EXPECT_EQ(Call(store::Operation::kTake, {{"a"}}, kStart, "").message(),
            "rate limit domain must not be empty");
  EXPECT_EQ(Call(store::Operation::kTake, {}, kStart).message(),
            "rate limit descriptor list must not be empty");
  const std::vector<rule::Descriptor> many(rule::kDescriptorsMax + 1);
  EXPECT_EQ(checker.Check({"d", many}, response, kStart).code(),
            absl::StatusCode::kInvalidArgument);
  const std::vector<rule::Entry> deep(rule::kEntriesMax + 1);
  const rule::Descriptor descriptor{.entries = deep};
  EXPECT_EQ(checker.Check({"d", {&descriptor, 1}}, response, kStart).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(LimiterTest, AllowsDescriptorsWithoutARule) {
  Publish({});
  EXPECT_TRUE(Check({{"unknown"}}).allowed);
  EXPECT_EQ(response.descriptors[0].outcome, Outcome::kNoRule);
  EXPECT_EQ(response.descriptors[0].rule, nullptr);
  EXPECT_FALSE(response.descriptors[0].has_decision());
}

TEST_F(LimiterTest, InPassthroughRequestsAreDecidedAndCountedAndPass) {
  FirstKeyRules rules;
  rules.Add("user", {{.requests = 1, .period = 1h}});
  rules.Add("other", {{.requests = 5, .period = 1h}});
  Publish(rules);
  EXPECT_FALSE(limiter.SetPassthrough(true));
  EXPECT_TRUE(Check({{"user"}, {"other"}}).allowed);
  EXPECT_FALSE(response.passed_despite) << "it would have passed anyway";
  EXPECT_TRUE(Check({{"user"}, {"other"}}).allowed);
  EXPECT_EQ(response.passed_despite, Outcome::kDenied);
  EXPECT_TRUE(response.descriptors[0].allowed());
  EXPECT_TRUE(response.descriptors[0].decision.allowed);
  EXPECT_EQ(response.descriptors[0].decision.retry_after, 0s);
  EXPECT_TRUE(Peek({{"user", "v", 1}}).allowed);
  EXPECT_TRUE(Check({{"user", "v", 7}}).allowed) << "it can never fit";
  EXPECT_EQ(observer.count(Outcome::kAllowed), 3u);
  EXPECT_EQ(observer.count(Outcome::kDenied), 1u);
  EXPECT_EQ(observer.count(Outcome::kNeverFits), 1u);
  EXPECT_TRUE(limiter.SetPassthrough(false));
  EXPECT_FALSE(Check({{"user"}}).allowed) << "what passed was counted";
  EXPECT_EQ(Remaining("other"), 3u);
}

TEST_F(LimiterTest, InPassthroughNothingWaitsAndRulesNeedNotBeThere) {
  limiter.SetPassthrough(true);
  EXPECT_TRUE(Check({{"user"}}).allowed);
  EXPECT_EQ(response.passed_despite, Outcome::kUnavailable);
  EXPECT_EQ(Call(store::Operation::kReset, {{"user"}}, kStart).code(),
            absl::StatusCode::kFailedPrecondition)
      << "it asks for no pass";
  EXPECT_EQ(Call(store::Operation::kTake, {}, kStart).code(), absl::StatusCode::kInvalidArgument);
  FirstKeyRules rules;
  rules.Add("user", {{.algorithm = Algorithm::kLeakyBucketQueue, .requests = 1, .period = 1h}});
  Publish(rules);
  Check({{"user"}});
  EXPECT_TRUE(Check({{"user"}}).allowed);
  EXPECT_EQ(response.descriptors[0].decision.wait, 0s);
}

TEST_F(LimiterTest, EachValueHasItsOwnBucket) {
  FirstKeyRules rules;
  rules.Add("user", {{.requests = 2, .period = 1h}});
  Publish(rules);
  EXPECT_TRUE(Check({{"user", "ann"}}).allowed);
  EXPECT_TRUE(Check({{"user", "ann"}}).allowed);
  EXPECT_FALSE(Check({{"user", "ann"}}).allowed);
  EXPECT_TRUE(Check({{"user", "bob"}}).allowed);
  EXPECT_EQ(observer.count(Outcome::kAllowed), 3u);
  EXPECT_EQ(observer.count(Outcome::kDenied), 1u);
  EXPECT_EQ(observer.series, 100u);
}

TEST_F(LimiterTest, OneDeniedDescriptorDeniesTheRequestButTheOthersStillCount) {
  FirstKeyRules rules;
  rules.Add("narrow", {{.requests = 1, .period = 1h}});
  rules.Add("wide", {{.requests = 10, .period = 1h}});
  Publish(rules);
  EXPECT_TRUE(Check({{"narrow"}, {"wide"}}).allowed);
  EXPECT_FALSE(Check({{"narrow"}, {"wide"}}).allowed);
  EXPECT_TRUE(response.descriptors[1].allowed());
  EXPECT_EQ(Remaining("wide"), 8u);
}

TEST_F(LimiterTest, AnAllOrNothingDomainConsumesEverywhereOrNowhere) {
  FirstKeyRules rules;
  rules.all_or_nothing = true;
  rules.Add("narrow", {{.requests = 1, .period = 1h}});
  rules.Add("wide", {{.requests = 10, .period = 1h}});
  rules.Add("shadow", {{.requests = 1, .period = 1h}}).shadow_mode = true;
  Publish(rules);
  EXPECT_TRUE(Check({{"wide"}, {"shadow"}, {"narrow"}}).allowed);
  EXPECT_FALSE(Check({{"wide"}, {"narrow"}}).allowed);
  EXPECT_EQ(Remaining("wide"), 9u);
  // A rule in shadow does not block the request, and consumes only together with the others.
  EXPECT_TRUE(Check({{"wide"}, {"shadow"}}).allowed);
  EXPECT_EQ(response.descriptors[1].outcome, Outcome::kShadowDenied);
  EXPECT_EQ(Remaining("wide"), 8u);
}

TEST_F(LimiterTest, InAnAllOrNothingDomainARuleCountsOnlyItsOwnDenials) {
  constexpr LimitSpec kCounts{.algorithm = Algorithm::kFixedWindow,
                              .requests = 10,
                              .period = 1h,
                              .burst = {},
                              .count_denied = true};
  FirstKeyRules rules;
  rules.all_or_nothing = true;
  rules.Add("narrow", {{.requests = 1, .period = 1h}});
  rules.Add("wide", {{.requests = 10, .period = 1h}});
  rules.Add("counts", {kCounts});
  rules.Add("shadow", {kCounts, {.requests = 10, .period = 1h}}).shadow_mode = true;
  rules.Add("login", {{.requests = 2, .period = 1h}, kCounts});
  Publish(rules);
  EXPECT_TRUE(Check({{"narrow"}, {"wide"}, {"counts"}, {"shadow"}}).allowed);
  EXPECT_FALSE(Check({{"narrow"}, {"wide"}, {"counts"}, {"shadow"}}).allowed);
  EXPECT_EQ(Remaining("wide"), 9u);
  EXPECT_EQ(Remaining("counts"), 9u) << "another descriptor denied the request";
  EXPECT_EQ(Remaining("shadow"), 9u);

  EXPECT_TRUE(Check({{"login"}, {"counts"}}).allowed);
  EXPECT_TRUE(Check({{"login"}, {"counts"}}).allowed);
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(Check({{"counts"}, {"login"}}).allowed);
  EXPECT_EQ(Remaining("counts"), 7u);
  EXPECT_FALSE(Check({{"login"}}, kStart + 30min).allowed)
      << "the rule's own denials have filled the hour";
  EXPECT_EQ(response.descriptors[0].decision.limit, 10u);
}

TEST_F(LimiterTest, AllLimitsOfARuleMustAllowAndTheTightestIsReported) {
  FirstKeyRules rules;
  rules.Add("user", {{.requests = 2, .period = 1s}, {.requests = 3, .period = 1h}});
  Publish(rules);
  EXPECT_EQ(Check({{"user"}}).descriptors[0].decision.remaining, 1u);
  EXPECT_EQ(Check({{"user"}}).descriptors[0].decision.remaining, 0u);
  EXPECT_FALSE(Check({{"user"}}).allowed);
  EXPECT_EQ(response.descriptors[0].decision.retry_after, 500ms);
  // The denied request took nothing from the hour.
  EXPECT_TRUE(Check({{"user"}}, kStart + 1s).allowed);
  EXPECT_EQ(response.descriptors[0].decision.limit, 3u);
  EXPECT_FALSE(Check({{"user"}}, kStart + 2s).allowed);
  EXPECT_EQ(Remaining("user", kStart + 2s), 0u);
}

TEST_F(LimiterTest, ARuleInShadowDecidesAndCountsButDoesNotDeny) {
  FirstKeyRules rules;
  rules.Add("user", {{.requests = 1, .period = 1h}}).shadow_mode = true;
  Publish(rules);
  Check({{"user"}});
  EXPECT_TRUE(Check({{"user"}}).allowed);
  EXPECT_EQ(response.descriptors[0].outcome, Outcome::kShadowDenied);
  EXPECT_FALSE(response.descriptors[0].decision.allowed);
  EXPECT_EQ(observer.count(Outcome::kShadowDenied), 1u);
}

TEST_F(LimiterTest, QuotaRulesDenyOnlyIfAllDeny) {
  FirstKeyRules rules;
  rules.Add("first", {{.requests = 1, .period = 1h}}).quota_mode = true;
  rules.Add("second", {{.requests = 2, .period = 1h}}).quota_mode = true;
  Publish(rules);
  EXPECT_TRUE(Check({{"first"}, {"second"}}).allowed);
  EXPECT_TRUE(Check({{"first"}, {"second"}}).allowed);
  EXPECT_FALSE(response.descriptors[0].allowed());
  EXPECT_FALSE(Check({{"first"}, {"second"}}).allowed);
}

TEST_F(LimiterTest, AnUnlimitedRuleAndAReplacedOneHaveNoLimit) {
  FirstKeyRules rules;
  rules.Add("free", {}).unlimited = true;
  rules.Add("special", {{.requests = 5, .period = 1h}}).replaces = {"base"};
  rules.Add("usual", {{.requests = 1, .period = 1h}}).name = "base";
  Publish(rules);
  EXPECT_EQ(Check({{"free"}}).descriptors[0].outcome, Outcome::kUnlimited);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Check({{"usual"}, {"special"}}).allowed);
    EXPECT_EQ(response.descriptors[0].outcome, Outcome::kNoRule);
  }
  EXPECT_EQ(Remaining("usual"), 1u);
}

TEST_F(LimiterTest, EachDescriptorHasItsOwnCost) {
  FirstKeyRules rules;
  rules.Add("user", {{.requests = 10, .period = 1h}});
  Publish(rules);
  Check({{"user", "a", 7}, {"user", "b"}, {"user", "c", 0}, {"user", "d", 11}});
  EXPECT_EQ(Remaining("user", kStart, "a"), 3u);
  EXPECT_EQ(Remaining("user", kStart, "b"), 9u);
  EXPECT_EQ(Remaining("user", kStart, "c"), 10u);
  EXPECT_EQ(Remaining("user", kStart, "d"), 10u);
  EXPECT_EQ(observer.count(Outcome::kNeverFits), 1u);
}

TEST_F(LimiterTest, AnOverrideCountsLikeEnvoyInItsOwnBucket) {
  FirstKeyRules rules;
  rules.Add("user", {{.requests = 1, .period = 1h}});
  Publish(rules);
  const Ask overridden{"user", "v", {}, rule::OverrideLimit{2, rule::Unit::kMinute}};
  EXPECT_TRUE(Check({overridden}).allowed);
  EXPECT_TRUE(Check({overridden}).allowed);
  EXPECT_FALSE(Check({overridden}).allowed);
  EXPECT_EQ(response.descriptors[0].limit->algorithm(), Algorithm::kFixedWindow);
  EXPECT_EQ(observer.count(Outcome::kAllowed), 2u);
  EXPECT_EQ(observer.count(Outcome::kDenied), 1u);
  EXPECT_EQ(observer.count(Outcome::kNoRule), 0u);
  EXPECT_EQ(observer.series, 0u) << "not counted for any rule, also not for the replaced one";
  EXPECT_EQ(Remaining("user"), 1u);
  // If the domain is unknown, not even an override applies.
  EXPECT_TRUE(Call(store::Operation::kTake, {overridden}, kStart, "elsewhere").ok());
  EXPECT_EQ(response.descriptors[0].outcome, Outcome::kNoRule);
}

TEST_F(LimiterTest, ARefundGivesBackAndAResetEmptiesTheBucket) {
  FirstKeyRules rules;
  rules.Add("user", {{.requests = 5, .period = 1h}});
  Publish(rules);
  Check({{"user", "v", 5}});
  EXPECT_TRUE(Call(store::Operation::kRefund, {{"user", "v", 2}}, kStart).ok());
  EXPECT_EQ(response.descriptors[0].decision.remaining, 2u);
  EXPECT_TRUE(Call(store::Operation::kReset, {{"user"}}, kStart).ok());
  EXPECT_EQ(response.descriptors[0].decision.remaining, 5u);
}

TEST_F(LimiterTest, ARefundThatIncludesAQueueChangesNothing) {
  FirstKeyRules rules;
  rules.Add("user", {{.requests = 5, .period = 1h}});
  rules.Add("queue", {{.algorithm = Algorithm::kLeakyBucketQueue, .requests = 5, .period = 1h}});
  Publish(rules);
  Check({{"user"}, {"queue"}});
  EXPECT_EQ(Call(store::Operation::kRefund, {{"user"}, {"queue"}}, kStart).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Remaining("user"), 4u);
}

TEST_F(LimiterTest, ConsumedRequestsAreCarriedOverAtTheTimeOfNewRules) {
  FirstKeyRules slow, fast;
  slow.Add("user", {{.requests = 1, .period = 10s, .burst = 5}});
  fast.Add("other", {{.requests = 1, .period = 1s}});
  fast.Add("user", {{.requests = 10, .period = 10s, .burst = 5}});
  Publish(slow);
  Check({{"user", "v", 5}});
  Publish(fast, kStart + 20s);
  // Two tokens at the old rate until 20 s, one at the new rate after it.
  EXPECT_EQ(Remaining("user", kStart + 21s), 3u);
}

// No requests come until the bucket would be full under the limit of its last use. The sweep must
// not delete it then.
TEST_F(LimiterTest, ABucketIsKeptUntilItIsFullUnderTheLaterLimitsOfItsRule) {
  FirstKeyRules quick, slow;
  quick.Add("user", {{.requests = 10, .period = 1s}});
  slow.Add("user", {{.requests = 10, .period = 1h}});
  Publish(quick);
  Check({{"user", "v", 10}});
  Publish(slow);
  store.Sweep(kStart + 2s);
  EXPECT_EQ(Remaining("user", kStart + 2s), 0u);
  EXPECT_EQ(Remaining("user", kStart + 6min), 1u);
  store.Sweep(kStart + 1h);
  EXPECT_EQ(store.stats().buckets, 0u);
}

TEST_F(LimiterTest, LoweringAndRaisingALimitAddsNothing) {
  FirstKeyRules hundred, ten, none;
  hundred.Add("user", {{.requests = 100, .period = 1h}});
  ten.Add("user", {{.requests = 10, .period = 1h}});
  none.Add("user", {{.requests = 0, .period = 1h}});
  Publish(hundred);
  Check({{"user", "v", 100}, {"user", "w", 20}});
  Publish(ten);
  Publish(hundred);
  EXPECT_EQ(Remaining("user"), 0u);
  EXPECT_EQ(Remaining("user", kStart, "w"), 10u);
  Publish(none);
  EXPECT_FALSE(Check({{"user", "w"}}).allowed);
  Publish(hundred);
  EXPECT_EQ(Remaining("user", kStart, "w"), 0u);
}

class OnceTest : public LimiterTest {
 protected:
  const Response& CheckOnce(std::string_view id, const std::vector<std::string>& keys,
                            Instant now = kStart) {
    std::vector<rule::Entry> entries;
    for (const std::string& key : keys) entries.push_back({key, "v"});
    std::vector<rule::Descriptor> descriptors;
    for (const rule::Entry& entry : entries) descriptors.push_back({.entries = {&entry, 1}});
    EXPECT_TRUE(
        checker
            .Check({.domain = "d", .descriptors = descriptors, .once = {id, 10min}}, response, now)
            .ok());
    return response;
  }
};

TEST_F(OnceTest, ARequestWithAnIdCountsOnce) {
  FirstKeyRules rules;
  rules.Add("user", {{.requests = 2, .period = 1h}});
  Publish(rules);
  EXPECT_TRUE(CheckOnce("one", {"user"}).allowed);
  EXPECT_FALSE(response.repeated);
  EXPECT_TRUE(CheckOnce("one", {"user"}).allowed);
  EXPECT_TRUE(response.repeated);
  EXPECT_EQ(response.descriptors[0].outcome, Outcome::kRepeated);
  EXPECT_EQ(response.descriptors[0].decision.remaining, 1u);
  EXPECT_EQ(Remaining("user"), 1u);
  EXPECT_TRUE(CheckOnce("two", {"user"}).allowed);
  EXPECT_EQ(Remaining("user"), 0u);
  EXPECT_TRUE(CheckOnce("one", {"user"}).allowed) << "it has passed, and nothing is left now";
  EXPECT_EQ(response.descriptors[0].decision.retry_after, 0s);
}

TEST_F(OnceTest, ADeniedRequestIsDecidedAnew) {
  FirstKeyRules rules;
  rules.Add("user", {{.requests = 1, .period = 1h}});
  Publish(rules);
  EXPECT_TRUE(CheckOnce("one", {"user"}).allowed);
  EXPECT_FALSE(CheckOnce("two", {"user"}).allowed);
  EXPECT_FALSE(response.repeated);
  EXPECT_FALSE(CheckOnce("two", {"user"}).allowed);
  EXPECT_TRUE(CheckOnce("two", {"user"}, kStart + 1h).allowed);
  EXPECT_FALSE(response.repeated);
  EXPECT_TRUE(CheckOnce("two", {"user"}, kStart + 1h).repeated);
}

TEST_F(OnceTest, AnIdIsForgottenAfterItsWindow) {
  FirstKeyRules rules;
  rules.Add("user", {{.requests = 9, .period = 24h}});
  Publish(rules);
  CheckOnce("one", {"user"});
  EXPECT_TRUE(CheckOnce("one", {"user"}, kStart + 10min - 1ns).repeated);
  EXPECT_FALSE(CheckOnce("one", {"user"}, kStart + 10min).repeated);
}

TEST_F(OnceTest, ARequestWithAnIdTakesFromAllDescriptorsOrNone) {
  FirstKeyRules rules;
  rules.Add("narrow", {{.requests = 1, .period = 1h}});
  rules.Add("wide", {{.requests = 10, .period = 1h}, {.requests = 20, .period = 24h}});
  rules.Add("shadow", {{.requests = 1, .period = 1h}}).shadow_mode = true;
  Publish(rules);
  EXPECT_TRUE(CheckOnce("one", {"wide", "shadow", "narrow"}).allowed);
  EXPECT_FALSE(CheckOnce("two", {"wide", "narrow"}).allowed);
  EXPECT_EQ(Remaining("wide"), 9u);
  EXPECT_TRUE(CheckOnce("one", {"wide", "shadow", "narrow"}).allowed);
  EXPECT_TRUE(response.repeated);
  EXPECT_EQ(Remaining("wide"), 9u);
  EXPECT_EQ(Remaining("shadow"), 0u);
}

// One of two quotas denies, which the request passes; it takes from all others or from none.
TEST_F(OnceTest, ARequestWithAnIdAndQuotasTakesFromTheOthers) {
  FirstKeyRules rules;
  rules.Add("full", {{.requests = 1, .period = 1h}}).quota_mode = true;
  rules.Add("free", {{.requests = 4, .period = 1h}}).quota_mode = true;
  rules.Add("plain", {{.requests = 3, .period = 1h}});
  Publish(rules);
  const std::vector<std::string> all{"full", "free", "plain"};
  EXPECT_TRUE(CheckOnce("one", all).allowed);
  EXPECT_TRUE(CheckOnce("two", all).allowed);
  EXPECT_FALSE(response.descriptors[0].allowed());
  EXPECT_TRUE(CheckOnce("two", all).repeated);
  EXPECT_EQ(Remaining("free"), 2u);
  EXPECT_EQ(Remaining("plain"), 1u);
  EXPECT_TRUE(CheckOnce("three", all).allowed);
  EXPECT_FALSE(CheckOnce("four", all).allowed) << "nothing is left of `plain`";
  EXPECT_EQ(Remaining("free"), 1u) << "and nothing was taken";
  EXPECT_TRUE(CheckOnce("five", {"full", "free"}).allowed);
  EXPECT_FALSE(CheckOnce("six", {"full", "free"}).allowed) << "all quotas deny";
  EXPECT_TRUE(CheckOnce("five", {"full", "free"}).repeated);
}

TEST_F(OnceTest, WithoutALimitThereIsNothingToRepeat) {
  FirstKeyRules rules;
  rules.Add("free", {}).unlimited = true;
  Publish(rules);
  CheckOnce("one", {"free", "other"});
  EXPECT_TRUE(CheckOnce("one", {"free", "other"}).allowed);
  EXPECT_EQ(response.descriptors[0].outcome, Outcome::kUnlimited);
  EXPECT_EQ(response.descriptors[1].outcome, Outcome::kNoRule);
}

TEST_F(LimiterTest, RulesThatDoNotFitAreRefusedAndTheOldOnesStay) {
  store::MemoryOptions options = Options();
  options.max_rule_limits = 2;
  store::MemoryStore small(options);
  Limiter small_limiter(small, nullptr);
  FirstKeyRules fits, too_many;
  fits.Add("a", {{.requests = 1, .period = 1h}});
  for (uint64_t i = 1; i <= 3; ++i) too_many.Add("b", {{.requests = 10 + i, .period = 1h}});
  ASSERT_TRUE(small_limiter.OnRules(std::make_shared<FirstKeyRules>(fits), kStart).ok());
  EXPECT_EQ(small_limiter.OnRules(std::make_shared<FirstKeyRules>(too_many), kStart).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(small_limiter.rules()->rules()[0].path, "a");
}

TEST_F(LimiterTest, ADecisionAllocatesNothing) {
  FirstKeyRules rules;
  rules.Add("user", {{.requests = 1'000'000, .period = 1s}, {.requests = 1'000'000, .period = 1h}});
  rules.Add("path",
            {{.algorithm = Algorithm::kSlidingWindowCounter, .requests = 1'000'000, .period = 1h}});
  Publish(rules);
  const std::string long_value(500, 'x');
  const std::array<rule::Entry, 2> entries{rule::Entry{"user", "ann"},
                                           rule::Entry{"path", long_value}};
  const std::array<rule::Descriptor, 2> descriptors{
      rule::Descriptor{.entries = {&entries[0], 1}},
      rule::Descriptor{.entries = {&entries[1], 1}, .cost = 3}};
  const Request request{"d", descriptors};
  ASSERT_TRUE(checker.Check(request, response, kStart).ok());
  const uint64_t before = headgate::testing::allocation_count.load();
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(checker.Check(request, response, kStart + base::Duration(i)).ok());
  }
  EXPECT_EQ(headgate::testing::allocation_count.load(), before);
}

}  // namespace checker_test
}  // namespace headgate::limiter
