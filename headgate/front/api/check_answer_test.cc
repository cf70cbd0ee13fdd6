#include "headgate/front/api/check_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/answer/answer_rig.h"

namespace headgate::front::api {
namespace check_answer_test {

using namespace std::chrono_literals;
using answer::Allowed;
using answer::Denied;
using answer::Named;
using limiter::DescriptorAnswer;
using limiter::Outcome;
using limiter::Response;

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

}  // namespace check_answer_test
}  // namespace headgate::front::api
