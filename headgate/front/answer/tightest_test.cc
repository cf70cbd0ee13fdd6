#include "headgate/front/answer/tightest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/front/answer/answer_rig.h"

namespace headgate::front::answer {
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
}  // namespace headgate::front::answer
