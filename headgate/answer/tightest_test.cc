#include "headgate/answer/tightest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/answer/answer_rig.h"

namespace headgate::answer {
namespace tightest_test {

using namespace std::chrono_literals;
using algorithm::Decision;
using algorithm::Limit;
using limiter::DescriptorAnswer;
using limiter::Outcome;
using limiter::Response;

TEST(RetryAfter, IsTheLongestOfWhatDenies) {
  const rule::Rule rule = Named("r");
  EXPECT_EQ(RetryAfter({.allowed = false,
                        .descriptors = {Denied(&rule, 2s), Denied(&rule, 5s), Allowed(&rule, 0)}}),
            5s);
  EXPECT_EQ(RetryAfter({.allowed = false,
                        .descriptors = {Denied(&rule, 2s), Denied(&rule, algorithm::kNever)}}),
            std::nullopt);
}

TEST(RetryAfter, DoesNotWaitForRulesInShadow) {
  const rule::Rule rule = Named("r");
  rule::Rule shadow = Named("s");
  shadow.shadow_mode = true;
  EXPECT_EQ(RetryAfter({.allowed = false, .descriptors = {Denied(&rule, 2s), Denied(&shadow, 5s)}}),
            2s);
}

TEST(RetryAfter, IsTheFirstOfTheRulesInQuotaModeBecauseOneIsEnough) {
  const rule::Rule rule = Named("r");
  rule::Rule quota = Named("q");
  quota.quota_mode = true;
  EXPECT_EQ(RetryAfter({.allowed = false, .descriptors = {Denied(&quota, 9s), Denied(&quota, 5s)}}),
            5s);
  EXPECT_EQ(RetryAfter({.allowed = false,
                        .descriptors = {Denied(&quota, algorithm::kNever), Denied(&quota, 5s)}}),
            5s);
  EXPECT_EQ(
      RetryAfter({.allowed = false,
                  .descriptors = {Denied(&quota, 9s), Denied(&rule, 7s), Allowed(&quota, 1)}}),
      7s);
  EXPECT_EQ(RetryAfter({.allowed = false, .descriptors = {Denied(&quota, 9s), Denied(&rule, 7s)}}),
            9s);
}

TEST(Tightest, IsWhatDeniesForLongestOrHasLeastLeft) {
  const rule::Rule a = Named("a");
  const rule::Rule b = Named("b");
  const rule::Rule c = Named("c");
  const auto name = [](const Response& response) {
    return std::string(Tightest(response)->policy);
  };
  EXPECT_EQ(
      name({.allowed = true, .descriptors = {Allowed(&a, 3), Allowed(&b, 1), Allowed(&c, 2)}}),
      "b");
  EXPECT_EQ(
      name({.allowed = false, .descriptors = {Allowed(&a, 0), Denied(&b, 1s), Denied(&c, 2s)}}),
      "c");
  EXPECT_EQ(
      name({.allowed = false, .descriptors = {Denied(&b, algorithm::kNever), Denied(&c, 2s)}}),
      "b");
}

TEST(Tightest, IsNeverARuleInShadowAndMayBeNone) {
  const rule::Rule a = Named("a");
  rule::Rule shadow = Named("s");
  shadow.shadow_mode = true;
  EXPECT_EQ(
      Tightest({.allowed = true, .descriptors = {Denied(&shadow, 5s), Allowed(&a, 1)}})->policy,
      "a");
  EXPECT_FALSE(Tightest({.allowed = true, .descriptors = {Denied(&shadow, 5s)}}).has_value());
  EXPECT_FALSE(Tightest({.allowed = true, .descriptors = {{}}}).has_value());
}

DescriptorAnswer OfLimit(const rule::Rule& rule, uint32_t index) {
  DescriptorAnswer answer = Allowed(&rule, 1);
  answer.limit = &rule.limits[index].limit;
  answer.limit_index = index;
  return answer;
}

// A client keeps the state of each policy by its name.
TEST(Tightest, TheLimitsOfARuleHaveNamesOfTheirOwn) {
  rule::Rule rule = Named("r");
  rule.limits = {{.limit = Make({.requests = 100, .period = 1h}), .unit = {}},
                 {.limit = Make({.requests = 5, .period = 1s}), .unit = {}}};
  const auto part = [](const DescriptorAnswer& answer) {
    return Tightest({.allowed = true, .descriptors = {answer}})->policy_part;
  };
  EXPECT_EQ(part(OfLimit(rule, 0)), "#1");
  EXPECT_EQ(part(OfLimit(rule, 1)), "#2");
  DescriptorAnswer permits = OfLimit(rule, 1);
  permits.of_permits = true;
  EXPECT_EQ(part(permits), "#concurrency");
  rule.limits.pop_back();
  EXPECT_EQ(part(OfLimit(rule, 0)), "");
  rule.limits.clear();
  permits.limit = &kTenPerMinute;
  EXPECT_EQ(part(permits), "");
}

TEST(Tightest, AWeekHasALengthAndAMonthHasNone) {
  const auto window = [](algorithm::Align align) {
    const Limit limit =
        Make({.algorithm = algorithm::Algorithm::kFixedWindow, .requests = 5, .align = align});
    const rule::Rule rule = Named("r");
    DescriptorAnswer answer = Allowed(&rule, 1);
    answer.limit = &limit;
    return Tightest({.allowed = true, .descriptors = {answer}})->window;
  };
  EXPECT_EQ(window(algorithm::Align::kCalendarWeek), 7 * 24h);
  EXPECT_EQ(window(algorithm::Align::kCalendarMonth), 0h);
  EXPECT_EQ(window(algorithm::Align::kCalendarYear), 0h);
}

// A permit may come back at any time.
TEST(Tightest, PromisesNoTimeForRequestsInFlight) {
  const rule::Rule rule = Named("r");
  DescriptorAnswer permits = Allowed(&rule, 1);
  permits.of_permits = true;
  EXPECT_EQ(Tightest({.allowed = true, .descriptors = {permits}})->more_after, std::nullopt);
  // The reset of permits is stated as 1 s, however long their ttl is.
  permits.decision = {.allowed = true, .limit = 2, .remaining = 1, .reset_after = 1h};
  EXPECT_EQ(Tightest({.allowed = true, .descriptors = {permits}})->reset_after, 1s);
  permits.decision.remaining = 2;
  EXPECT_EQ(Tightest({.allowed = true, .descriptors = {permits}})->reset_after, 0s);
  permits.decision = {
      .allowed = false, .limit = 2, .remaining = 0, .retry_after = 3s, .reset_after = 1h};
  permits.outcome = limiter::Outcome::kDenied;
  EXPECT_EQ(Tightest({.allowed = false, .descriptors = {permits}})->reset_after, 3s);
}

TEST(Tightest, SaysWhatItsLimitCounts) {
  rule::Rule rule = Named("r");
  rule.quota_unit = base::QuotaUnit::kTokens;
  rule.limits = {{.limit = Make({.requests = 100, .period = 1h}), .unit = {}}};
  rule.rollout = std::make_shared<rule::Rollout>(
      rule::Rollout{.limits = {{.limit = Make({.requests = 7, .period = 1h}),
                                .unit = {},
                                .cost = rule::SizeCost{.per_bytes = 1024}}},
                    .keys_ppm = 1});
  const auto state = [](const DescriptorAnswer& answer) {
    return *Tightest({.allowed = true, .descriptors = {answer}});
  };
  EXPECT_EQ(state(OfLimit(rule, 0)).unit, base::QuotaUnit::kTokens);
  DescriptorAnswer tried = OfLimit(rule, 0);
  tried.limit = &rule.rollout->limits[0].limit;
  EXPECT_EQ(state(tried).unit, base::QuotaUnit::kContentBytes);
  EXPECT_EQ(state(tried).unit_size, 1024u);
  tried.of_permits = true;
  EXPECT_EQ(state(tried).unit, base::QuotaUnit::kConcurrentRequests);
  EXPECT_EQ(state(tried).unit_size, 1u);
  // A count by status is a cost that is settled like a size, and counts requests.
  rule.quota_unit = base::QuotaUnit::kRequests;
  rule.limits[0].cost = rule::SizeCost{.of = rule::SizeCost::Of::kCountedAnswers};
  EXPECT_EQ(state(OfLimit(rule, 0)).unit, base::QuotaUnit::kRequests);
  // The request gave another number than the file has.
  rule.limits[0].cost = rule::SizeCost{.per_bytes = 10};
  DescriptorAnswer given = OfLimit(rule, 0);
  given.limit = &kTenPerMinute;
  EXPECT_EQ(state(given).unit, base::QuotaUnit::kContentBytes);
  DescriptorAnswer own = OfLimit(rule, 0);
  own.rule = nullptr;
  EXPECT_EQ(state(own).unit, base::QuotaUnit::kRequests);
}

TEST(Tightest, IsDescribedAsItsRuleSays) {
  rule::Rule openai = Named("a");
  openai.rate_limit_fields = base::RateLimitDialect::kOpenai;
  openai.refusal = std::make_shared<const rule::Refusal>(*rule::Refusal::Make("text/plain", "no"));
  const rule::Rule plain = Named("b");
  const Response by_openai{.allowed = false,
                           .descriptors = {Denied(&openai, 2s), Denied(&plain, 1s)}};
  EXPECT_EQ(Tightest(by_openai)->dialect, base::RateLimitDialect::kOpenai);
  EXPECT_EQ(RefusalOf(by_openai), openai.refusal);
  const Response by_plain{.allowed = false,
                          .descriptors = {Denied(&openai, 1s), Denied(&plain, 2s)}};
  EXPECT_EQ(Tightest(by_plain)->dialect, std::nullopt);
  EXPECT_EQ(RefusalOf(by_plain), nullptr);
}

TEST(Tightest, SaysWhereItsLimitStands) {
  const rule::Rule a = Named("a");
  const wire::RateLimitState state = *Tightest({.allowed = false, .descriptors = {Denied(&a, 5s)}});
  EXPECT_EQ(state.policy, "a");
  EXPECT_EQ(state.quota, 10);
  EXPECT_EQ(state.window, 1min);
  EXPECT_EQ(state.limit, 20);
  EXPECT_EQ(state.remaining, 0);
  EXPECT_EQ(state.reset_after, 2min);
  EXPECT_TRUE(state.denied);
}

TEST(Tightest, NamesARequestsOwnLimitAndNoWindowWhereTheCalendarHasIt) {
  const Limit month = Make({.algorithm = algorithm::Algorithm::kFixedWindow,
                            .requests = 5,
                            .period = 1s,
                            .align = algorithm::Align::kCalendarMonth});
  DescriptorAnswer outcome = Allowed(nullptr, 1);
  outcome.limit = &month;
  const wire::RateLimitState state = *Tightest({.allowed = true, .descriptors = {outcome}});
  EXPECT_EQ(state.policy, "request");
  EXPECT_EQ(state.window, 0s);
}

}  // namespace tightest_test
}  // namespace headgate::answer
