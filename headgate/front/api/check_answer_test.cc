#include "headgate/front/api/check_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::front::api {
namespace {

using namespace std::chrono_literals;
using algorithm::Decision;
using algorithm::Limit;
using limiter::DescriptorAnswer;
using limiter::Outcome;
using limiter::Response;

Limit Make(algorithm::LimitSpec spec) { return *Limit::Make(spec); }

const Limit kTenPerMinute = Make({.requests = 10, .period = 1min, .burst = 20});

rule::Rule Named(const std::string& name) {
  rule::Rule rule;
  rule.name = name;
  rule.path = "api_key";
  return rule;
}

DescriptorAnswer Allowed(const rule::Rule* rule, uint64_t remaining) {
  return {.rule = rule,
          .outcome = Outcome::kAllowed,
          .decision = {.allowed = true, .limit = 20, .remaining = remaining, .reset_after = 6s},
          .limit = &kTenPerMinute};
}

DescriptorAnswer Denied(const rule::Rule* rule, base::Duration retry_after) {
  const bool never = retry_after == algorithm::kNever;
  return {.rule = rule,
          .outcome = rule != nullptr && rule->shadow_mode ? Outcome::kShadowDenied
                     : never                              ? Outcome::kNeverFits
                                                          : Outcome::kDenied,
          .decision = {.allowed = false,
                       .limit = 20,
                       .remaining = 0,
                       .retry_after = retry_after,
                       .reset_after = 2min},
          .limit = &kTenPerMinute};
}

std::string Answer(const Response& response) {
  std::string out;
  AppendAnswer(response, out);
  return out;
}

TEST(CheckAnswer, IsTheDocumentedJson) {
  const rule::Rule rule = Named("gold");
  EXPECT_EQ(
      Answer({.allowed = true, .descriptors = {Allowed(&rule, 9)}}),
      R"({"allowed":true,"decisions":[{"allowed":true,"limit":20,"remaining":9,"retry_after_ms":0,)"
      R"("reset_after_ms":6000,"wait_ms":0,"rule":"gold","shadow":false}]})"
      "\n");
}

TEST(CheckAnswer, RoundsMillisecondsUp) {
  DescriptorAnswer outcome = Denied(nullptr, 1ns);
  outcome.decision.reset_after = 1ms + 1ns;
  outcome.decision.wait = 2ms - 1ns;
  EXPECT_EQ(
      Answer({.allowed = false, .descriptors = {outcome}}),
      R"({"allowed":false,"decisions":[{"allowed":false,"limit":20,"remaining":0,"retry_after_ms":1,)"
      R"("reset_after_ms":2,"wait_ms":2,"rule":null,"shadow":false}]})"
      "\n");
}

TEST(CheckAnswer, HasNoRetryWhereTheCostNeverFits) {
  EXPECT_EQ(
      Answer({.allowed = false, .descriptors = {Denied(nullptr, algorithm::kNever)}}),
      R"({"allowed":false,"decisions":[{"allowed":false,"limit":20,"remaining":0,"retry_after_ms":null,)"
      R"("reset_after_ms":120000,"wait_ms":0,"rule":null,"shadow":false}]})"
      "\n");
}

TEST(CheckAnswer, HasNoNumbersWhereNothingLimits) {
  rule::Rule unlimited = Named("");
  unlimited.unlimited = true;
  EXPECT_EQ(
      Answer(
          {.allowed = true,
           .descriptors = {{.rule = nullptr, .outcome = Outcome::kNoRule, .decision = {}},
                           {.rule = &unlimited, .outcome = Outcome::kUnlimited, .decision = {}}}}),
      R"({"allowed":true,"decisions":[{"allowed":true,"limit":null,"remaining":null,"retry_after_ms":0,)"
      R"("reset_after_ms":0,"wait_ms":0,"rule":null,"shadow":false},)"
      R"({"allowed":true,"limit":null,"remaining":null,"retry_after_ms":0,)"
      R"("reset_after_ms":0,"wait_ms":0,"rule":"api_key","shadow":false}]})"
      "\n");
}

TEST(CheckAnswer, SaysWhatAShadowRuleWouldHaveDone) {
  rule::Rule shadow = Named("trial \"x\"");
  shadow.shadow_mode = true;
  EXPECT_EQ(
      Answer({.allowed = true, .descriptors = {Denied(&shadow, 3s)}}),
      R"({"allowed":true,"decisions":[{"allowed":true,"limit":20,"remaining":0,"retry_after_ms":3000,)"
      R"("reset_after_ms":120000,"wait_ms":0,"rule":"trial \"x\"","shadow":true}]})"
      "\n");
}

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

}  // namespace
}  // namespace headgate::front::api
