// Refunds with an id, which are executed at most once, and refunds and resets whose answer is late.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "headgate/base/hash_rig.h"
#include "headgate/limiter/checker.h"
#include "headgate/limiter/shared/shared_decider.h"
#include "headgate/rule/read/load.h"
#include "headgate/store/memory.h"
#include "headgate/testing/manual_shared_store.h"

namespace headgate::limiter {
namespace request_refunds_test {

using base::Instant;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

constexpr std::string_view kRules = R"(
domain: d
descriptors:
  - key: one
    rate_limit: {period: 1d, requests_per_unit: 1000, algorithm: token_bucket, sharing: exact}
  - key: two
    rate_limit: {period: 1d, requests_per_unit: 1000, algorithm: token_bucket, sharing: exact}
)";

class RefundsTest : public ::testing::Test {
 protected:
  RefundsTest() {
    const rule::read::RuleFile file{.name = "f.yaml", .text = std::string(kRules)};
    EXPECT_TRUE(limiter.OnRules(rule::read::LoadRules({&file, 1}, {}).rules, now).ok());
    EXPECT_TRUE(Ask(Operation::kTake, {"one", "two"}, 600).ok());
  }

  absl::Status Begin(Operation operation, const std::vector<std::string>& keys, uint64_t cost,
                     std::string_view id) {
    std::vector<rule::Entry> entries;
    for (const std::string& key : keys) entries.push_back({key, "v"});
    std::vector<rule::Descriptor> descriptors;
    for (const rule::Entry& entry : entries)
      descriptors.push_back({.entries = {&entry, 1}, .cost = cost});
    return checker.Check({.domain = "d",
                          .descriptors = descriptors,
                          .operation = operation,
                          .once = {.id = id, .window = kIdRemembered}},
                         response, now, &question);
  }
  // Asks like a front, to the end. `before_answer` numbers the answers.
  absl::Status Ask(Operation operation, const std::vector<std::string>& keys, uint64_t cost,
                   std::string_view id = "",
                   const std::function<void(int answer)>& before_answer = {}) {
    int answers = 0;
    absl::Status status = Begin(operation, keys, cost, id);
    while (response.waiting) {
      while (question.waiting()) {
        if (before_answer) before_answer(answers++);
        shared.AnswerOne();
      }
      status = checker.Continue(question, response, now);
    }
    while (shared.waiting() > 0) shared.AnswerOne();  // notes, for which nobody waits
    return status;
  }
  absl::Status Refund(std::string_view id,
                      const std::function<void(int answer)>& before_answer = {}) {
    return Ask(Operation::kRefund, {"one"}, 100, id, before_answer);
  }
  uint64_t Left(const std::string& key) {
    EXPECT_TRUE(Ask(Operation::kPeek, {key}, 0).ok());
    return response.descriptors[0].decision.remaining;
  }

  Instant now = Instant::FromNanos(1'790'000'000'000'000'000);
  store::MemoryStore local{{.max_buckets = 1000, .secret = base::SecretFromSeed(1)}};
  testing::ManualSharedStore shared{local, now};
  Limiter limiter{local, nullptr};
  shared::SharedDecider fleet{shared, local, {}};
  Checker checker{limiter, 0, fleet, BucketNaming{}};
  Question question{[] {}};
  Response response;
};

TEST_F(RefundsTest, ARepeatedRefundGivesBackOnce) {
  EXPECT_TRUE(Refund("a").ok());
  EXPECT_FALSE(response.repeated);
  EXPECT_EQ(response.descriptors[0].decision.remaining, 500u);
  EXPECT_TRUE(Refund("a").ok());
  EXPECT_TRUE(response.repeated);
  EXPECT_TRUE(response.allowed);
  EXPECT_EQ(response.descriptors[0].decision.remaining, 500u) << "the state as it is";
  EXPECT_TRUE(Refund("b").ok());
  EXPECT_EQ(Left("one"), 600u) << "another id, another refund";
  EXPECT_TRUE(Refund("").ok());
  EXPECT_TRUE(Refund("").ok());
  EXPECT_EQ(Left("one"), 800u) << "without an id each counts";
}

TEST_F(RefundsTest, ARefundThatIsAnsweredTooLateMayHaveBeenDoneAndIsNotDoneAgain) {
  const auto late = [&](int answer) { shared.answer_is_late = answer == 1; };
  const absl::Status status = Refund("a", late);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("rule one may have been refunded"));
  EXPECT_EQ(Left("one"), 500u) << "the store has executed it";
  const absl::Status again = Refund("a");
  EXPECT_THAT(again.message(), HasSubstr("an earlier refund with this id was not confirmed"));
  EXPECT_EQ(Left("one"), 500u);
}

TEST_F(RefundsTest, WithoutAnIdALateAnswerIsReportedToo) {
  shared.answer_is_late = true;
  EXPECT_THAT(Refund("").message(), HasSubstr("rule one may have been refunded"));
  shared.answer_is_late = true;
  EXPECT_THAT(Ask(Operation::kReset, {"one"}, 0).message(),
              HasSubstr("the buckets of rule one may have been reset"));
}

TEST_F(RefundsTest, AnIdThatCannotBeRememberedRefundsNothing) {
  const auto late = [&](int answer) { shared.answer_is_late = answer == 0; };
  EXPECT_THAT(Refund("a", late).message(), HasSubstr("may have been refunded"))
      << "an earlier one may have used it";
  shared.failure = absl::UnavailableError("gone");
  EXPECT_THAT(Refund("b").message(), HasSubstr("nothing was refunded to rule one"));
  shared.failure = absl::OkStatus();
  EXPECT_EQ(Left("one"), 400u);
  EXPECT_TRUE(Refund("b").ok());
  EXPECT_EQ(Left("one"), 500u);
}

TEST_F(RefundsTest, AnIdIsFreeAgainIfNothingWasRefunded) {
  const auto gone = [&](int answer) {
    if (answer == 1) shared.failure = absl::UnavailableError("gone");
  };
  // The store is there again when the id is given back.
  EXPECT_THAT(Begin(Operation::kRefund, {"one"}, 100, "a"), absl::OkStatus());
  shared.AnswerOne();
  EXPECT_THAT(checker.Continue(question, response, now), absl::OkStatus());
  gone(1);
  shared.AnswerOne();
  shared.failure = absl::OkStatus();
  EXPECT_THAT(checker.Continue(question, response, now).message(),
              HasSubstr("nothing was refunded to rule one"));
  shared.AnswerAll();
  EXPECT_EQ(Left("one"), 400u);
  EXPECT_TRUE(Refund("a").ok());
  EXPECT_EQ(Left("one"), 500u);
}

TEST_F(RefundsTest, AnIdKeepsWhatWasRefundedInPart) {
  const auto gone = [&](int answer) {
    shared.failure = answer == 2 ? absl::UnavailableError("gone") : absl::OkStatus();
  };
  const absl::Status status = Ask(Operation::kRefund, {"one", "two"}, 100, "a", gone);
  EXPECT_THAT(status.message(), HasSubstr("nothing was refunded to rule two"));
  shared.failure = absl::OkStatus();
  EXPECT_EQ(Left("one"), 500u);
  EXPECT_EQ(Left("two"), 400u);
  EXPECT_THAT(Ask(Operation::kRefund, {"one", "two"}, 100, "a").code(),
              absl::StatusCode::kUnavailable);
  EXPECT_EQ(Left("one"), 500u) << "at most once";
}

TEST_F(RefundsTest, AnIdIsForgottenAfterItsTime) {
  EXPECT_TRUE(Refund("a").ok());
  now += kIdRemembered;
  const uint64_t left = Left("one");
  EXPECT_TRUE(Refund("a").ok());
  EXPECT_EQ(Left("one"), left + 100);
}

}  // namespace request_refunds_test
}  // namespace headgate::limiter
