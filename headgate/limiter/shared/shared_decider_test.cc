// The limiter with a store that answers later or not at all. One file because all tests use one
// fixture with one set of rules.
#include "headgate/limiter/shared/shared_decider.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/base/hash_rig.h"
#include "headgate/limiter/checker.h"
#include "headgate/rule/read/load.h"
#include "headgate/store/memory.h"
#include "headgate/testing/manual_shared_store.h"

namespace headgate::limiter::shared {
namespace shared_decider_test {

using base::Instant;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

constexpr std::string_view kRules = R"(
domain: d
descriptors:
  - key: two
    rate_limit: {period: 20s, requests_per_unit: 2, algorithm: token_bucket}
  - key: both
    rate_limits:
      - {period: 20s, requests_per_unit: 5, algorithm: token_bucket}
      - {period: 20s, requests_per_unit: 2, algorithm: fixed_window}
  - key: queued
    rate_limits:
      - {period: 10s, requests_per_unit: 1, algorithm: leaky_bucket, queue: true, burst: 3}
      - {period: 20s, requests_per_unit: 1, algorithm: fixed_window}
  - key: open
    rate_limit: {period: 20s, requests_per_unit: 2, algorithm: token_bucket, on_store_failure: allow}
  - key: closed
    rate_limit: {period: 20s, requests_per_unit: 2, algorithm: token_bucket, on_store_failure: deny}
  - key: locked
    rate_limit: {period: 20s, requests_per_unit: 2, algorithm: token_bucket, strict: lock}
  - key: fifth
    rate_limit: {period: 20s, requests_per_unit: 10, algorithm: token_bucket, fallback_share: 0.2}
  - key: five
    rate_limit: {period: 1h, requests_per_unit: 5, algorithm: token_bucket}
  - key: hundred
    rate_limit: {period: 1h, requests_per_unit: 100, algorithm: token_bucket}
  - key: busy
    rate_limit: {period: 4s, requests_per_unit: 100, algorithm: token_bucket}
  - key: pair
    rate_limits:
      - {period: 1h, requests_per_unit: 1000, algorithm: token_bucket}
      - {period: 1h, requests_per_unit: 10, algorithm: sliding_window_log}
  - key: hour
    rate_limit: {period: 1h, requests_per_unit: 8, algorithm: fixed_window}
  - key: login
    rate_limits:
      - {period: 10s, requests_per_unit: 1, burst: 2}
      - {period: 1h, requests_per_unit: 5, algorithm: fixed_window, align: first_hit, count_denied: true}
      - {period: 1d, requests_per_unit: 100, algorithm: sliding_window_log}
  - key: refusing
    rate_limits:
      - {period: 1h, requests_per_unit: 5, algorithm: fixed_window, count_denied: true, on_store_failure: deny}
      - {period: 10s, requests_per_unit: 1, burst: 2, on_store_failure: deny}
  - key: watched
    rate_limit: {period: 20s, requests_per_unit: 1, algorithm: token_bucket}
    shadow_mode: true
)";

class SharedDeciderTest : public ::testing::Test {
 protected:
  explicit SharedDeciderTest(const SharedDeciderOptions& options = {})
      : fleet(shared, local, options) {
    Publish(std::string(kRules));
  }

  void Publish(const std::string& text) {
    const std::vector<rule::read::RuleFile> files{{.name = "f.yaml", .text = text}};
    rule::read::LoadResult loaded = rule::read::LoadRules(files, {});
    EXPECT_EQ(Describe(loaded.problems), "");
    EXPECT_TRUE(limiter.OnRules(loaded.rules, now).ok());
  }

  static store::MemoryOptions Options() {
    return {.max_buckets = 1000, .secret = base::SecretFromSeed(1)};
  }

  // Asks like a front, to the end.
  absl::Status Ask(Operation operation, const std::vector<std::string>& keys,
                   std::optional<uint64_t> cost = {}) {
    std::vector<rule::Entry> entries;
    for (const std::string& key : keys) entries.push_back({key, "v"});
    std::vector<rule::Descriptor> descriptors;
    for (const rule::Entry& entry : entries)
      descriptors.push_back({.entries = {&entry, 1}, .cost = cost});
    ready = 0;
    absl::Status status = checker.Check({"d", descriptors, operation}, response, now, &question);
    while (response.waiting) {
      const int ready_before = ready;
      shared.AnswerAll();
      EXPECT_EQ(ready, ready_before + 1);
      status = checker.Continue(question, response, now);
    }
    return status;
  }
  bool Allowed(const std::vector<std::string>& keys, std::optional<uint64_t> cost = {}) {
    EXPECT_TRUE(Ask(Operation::kTake, keys, cost).ok());
    return response.allowed;
  }
  // Asks, and does not wait for the answer.
  void Peek(const std::string& key) {
    const rule::Entry entry{key, "v"};
    const rule::Descriptor descriptor{.entries = {&entry, 1}};
    Question nobody([] {});
    EXPECT_TRUE(
        checker.Check({"d", {&descriptor, 1}, store::Operation::kPeek}, response, now, &nobody)
            .ok());
    EXPECT_TRUE(response.waiting);
  }
  uint64_t Remaining(const std::string& key) {
    EXPECT_TRUE(Ask(Operation::kPeek, {key}).ok());
    return response.descriptors[0].decision.remaining;
  }
  // Advances time until all debts can have been settled.
  void SettleDebts() {
    now += 600ms;
    fleet.OnTime();
    shared.AnswerAll();
  }
  Mode mode() const { return response.descriptors[0].mode; }

  Instant now = Instant::FromNanos(1'790'000'000'000'000'000);
  store::MemoryStore local{Options()};
  testing::ManualSharedStore shared{local, now};
  Limiter limiter{local, nullptr};
  SharedDecider fleet;
  Checker checker{limiter, 0, fleet, BucketNaming{}};
  int ready = 0;
  Question question{[this] { ++ready; }};
  Response response;
};

TEST_F(SharedDeciderTest, WaitsForTheStoreAndReturnsItsDecision) {
  const rule::Entry entry{"two", "v"};
  const rule::Descriptor descriptor{.entries = {&entry, 1}};
  const Request request{"d", {&descriptor, 1}};
  EXPECT_TRUE(checker.Check(request, response, now, &question).ok());
  EXPECT_TRUE(response.waiting);
  EXPECT_TRUE(question.open());
  EXPECT_TRUE(checker.Continue(question, response, now).ok());
  EXPECT_TRUE(response.waiting) << "too early";
  EXPECT_EQ(ready, 0);
  shared.AnswerAll();
  EXPECT_EQ(ready, 1);
  EXPECT_TRUE(checker.Continue(question, response, now).ok());
  EXPECT_FALSE(question.open());
  EXPECT_FALSE(response.waiting);
  EXPECT_TRUE(response.allowed);
  EXPECT_EQ(response.descriptors[0].decision.remaining, 1u);
  EXPECT_EQ(mode(), Mode::kExact);
  EXPECT_THAT(shared.names(), ElementsAre("hg:{r|d|two=v#0}"));
  EXPECT_EQ(fleet.decisions(Mode::kExact), 1u);
}

TEST_F(SharedDeciderTest, ARuleMayAskForTheLockOfTheKey) {
  Peek("locked");
  EXPECT_TRUE(shared.oldest().locked);
}

TEST_F(SharedDeciderTest, OtherRulesDoNotAskForALock) {
  Peek("closed");
  EXPECT_FALSE(shared.oldest().locked);
}

// The default of these tests is to decide locally.
TEST_F(SharedDeciderTest, ALockedRequestIsRefusedIfItCannotBeDecided) {
  shared.failure = absl::CancelledError("other instances had the lock for too long");
  EXPECT_TRUE(Allowed({"two"}));
  EXPECT_EQ(Ask(Operation::kTake, {"locked"}),
            absl::UnavailableError("other instances had the lock of the key for longer than "
                                   "store_lock_timeout, and rule locked then refuses requests"));
  EXPECT_EQ(response.descriptors[0].outcome, Outcome::kUnavailable);
  EXPECT_EQ(mode(), Mode::kClosed);
}

TEST_F(SharedDeciderTest, ARefusalWithoutTheStoreSaysWhy) {
  const auto message = [&](absl::Status failure) {
    shared.failure = std::move(failure);
    return std::string(Ask(Operation::kTake, {"closed"}).message());
  };
  constexpr std::string_view kThen = ", and rule closed then refuses requests";
  EXPECT_EQ(message(absl::UnavailableError("")),
            std::string("the shared store cannot be reached").append(kThen));
  EXPECT_EQ(message(absl::PermissionDeniedError("")),
            std::string("the shared store refuses access to its user").append(kThen));
  EXPECT_EQ(message(absl::DataLossError("")),
            std::string("the bucket in the shared store is damaged until a reset removes it")
                .append(kThen));
  EXPECT_EQ(
      message(absl::ResourceExhaustedError("")),
      std::string("the shared store, or this key in it, has too many calls at once").append(kThen));
}

TEST_F(SharedDeciderTest, EachRequestIsSentToTheStoreOnce) {
  EXPECT_TRUE(Allowed({"two"}));
  EXPECT_TRUE(Allowed({"two"}));
  EXPECT_FALSE(Allowed({"two"}));
  EXPECT_EQ(shared.names().size(), 3u);
  EXPECT_EQ(response.descriptors[0].decision.retry_after, 10s);
}

TEST_F(SharedDeciderTest, DescriptorsAreAskedTogether) {
  const rule::Entry entries[] = {{"two", "v"}, {"fifth", "v"}};
  const rule::Descriptor descriptors[] = {{.entries = {&entries[0], 1}},
                                          {.entries = {&entries[1], 1}}};
  EXPECT_TRUE(checker.Check({"d", descriptors}, response, now, &question).ok());
  EXPECT_EQ(shared.waiting(), 2u);
  shared.AnswerOne();
  EXPECT_EQ(ready, 0);
  shared.AnswerOne();
  EXPECT_EQ(ready, 1);
}

TEST_F(SharedDeciderTest, TheLimitsOfARuleConsumeTogetherOrNotAtAll) {
  EXPECT_TRUE(Allowed({"both"}, 2));
  EXPECT_FALSE(Allowed({"both"}, 1));  // the window is full
  // The bucket was asked first and got its part back: 5 − 2.
  EXPECT_THAT(shared.names(),
              ElementsAre("hg:{r|d|both=v#0}", "hg:{r|d|both=v#1}", "hg:{r|d|both=v#0}",
                          "hg:{r|d|both=v#1}", "hg:{r|d|both=v#0}"));
  EXPECT_TRUE(Ask(Operation::kPeek, {"both"}).ok());
  now += 20s;
  EXPECT_TRUE(Allowed({"both"}, 2));
}

TEST_F(SharedDeciderTest, ALimitThatCountsDenialsAlsoCountsThoseOfItsRulesOtherLimits) {
  EXPECT_TRUE(Allowed({"login"}));
  EXPECT_TRUE(Allowed({"login"}));
  EXPECT_FALSE(Allowed({"login"}));
  EXPECT_EQ(response.descriptors[0].decision.retry_after, 10s);
  EXPECT_FALSE(Allowed({"login"}));
  EXPECT_FALSE(Allowed({"login"}));  // the fifth: counted, and now the window is full
  EXPECT_EQ(response.descriptors[0].decision.retry_after, 1h);
  now += 10s;
  EXPECT_FALSE(Allowed({"login"}));
  EXPECT_EQ(response.descriptors[0].decision.retry_after, 1h - 10s);
}

TEST_F(SharedDeciderTest, InAnAllOrNothingDomainARuleCountsOnlyItsOwnDenials) {
  Publish(R"(
domain: d
all_or_nothing: true
descriptors:
  - key: one
    rate_limit: {period: 1h, requests_per_unit: 1, algorithm: token_bucket}
  - key: counts
    rate_limit: {period: 1h, requests_per_unit: 5, algorithm: fixed_window, count_denied: true}
  - key: login
    rate_limits:
      - {period: 1h, requests_per_unit: 5, algorithm: fixed_window, align: first_hit, count_denied: true}
      - {period: 10s, requests_per_unit: 1, burst: 2}
)");
  EXPECT_TRUE(Allowed({"one", "counts"}));
  for (int i = 0; i < 3; ++i)
    EXPECT_FALSE(Allowed({"one", "counts"})) << "denied by the other descriptor";
  EXPECT_TRUE(Allowed({"counts"}));
  EXPECT_EQ(response.descriptors[0].decision.remaining, 3u) << "two of five are counted";
  // Its own rule denies, and is asked after the other one, which has denied already.
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Allowed({"login"}));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(Allowed({"one", "login"}));
  EXPECT_EQ(response.descriptors[1].decision.retry_after, 1h) << "the hour has counted five";
}

TEST_F(SharedDeciderTest, ARequestThatFailedAtTheStoreDoesNotCountAsDenied) {
  const rule::Entry entry{"refusing", "v"};
  const rule::Descriptor descriptor{.entries = {&entry, 1}};
  EXPECT_TRUE(checker.Check({"d", {&descriptor, 1}}, response, now, &question).ok());
  shared.AnswerOne();  // the window has counted it
  shared.failure = absl::UnavailableError("the bucket's shard is gone");
  shared.AnswerOne();
  shared.failure = absl::OkStatus();
  shared.AnswerAll();  // the window takes it back
  EXPECT_FALSE(checker.Continue(question, response, now).ok());
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Allowed({"refusing"}));
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(Allowed({"refusing"}));
  EXPECT_EQ(response.descriptors[0].decision.retry_after, 10s) << "four of five are counted";
  EXPECT_FALSE(Allowed({"refusing"}));
  EXPECT_GT(response.descriptors[0].decision.retry_after, 10s);
}

TEST_F(SharedDeciderTest, AQueueIsAskedLastBecauseItCannotBeRefunded) {
  EXPECT_TRUE(Allowed({"queued"}));
  EXPECT_FALSE(Allowed({"queued"}));
  EXPECT_THAT(shared.names(),
              ElementsAre("hg:{r|d|queued=v#0}", "hg:{r|d|queued=v#1}", "hg:{r|d|queued=v#0}",
                          "hg:{r|d|queued=v#1}", "hg:{r|d|queued=v#1}"));
  now += 20s;  // at once, since the denied request did not reserve a turn in the queue
  EXPECT_TRUE(Allowed({"queued"}));
  EXPECT_EQ(response.descriptors[0].decision.wait, 0s);
}

TEST_F(SharedDeciderTest, RulesInShadowAreAskedAfterTheOthers) {
  EXPECT_TRUE(Allowed({"watched", "two"}));
  EXPECT_THAT(shared.names(), ElementsAre("hg:{r|d|two=v#0}", "hg:{r|d|watched=v#0}"));
  EXPECT_TRUE(Allowed({"watched", "two"}));
  EXPECT_EQ(response.descriptors[0].outcome, Outcome::kShadowDenied);
}

TEST_F(SharedDeciderTest, WithoutTheStoreARuleIsLimitedToThisInstancesShare) {
  shared.failure = absl::UnavailableError("gone");
  shared.instance_count = 2;
  EXPECT_TRUE(Allowed({"two"}));
  EXPECT_EQ(mode(), Mode::kLocal);
  EXPECT_FALSE(Allowed({"two"}));  // one of two
  EXPECT_EQ(fleet.decisions(Mode::kLocal), 2u);
}

TEST_F(SharedDeciderTest, ARequestThatWaitedInVainIsDecidedAsOfNow) {
  shared.failure = absl::DeadlineExceededError("late");
  EXPECT_TRUE(Allowed({"hour"}, 8));
  const rule::Entry entry{"hour", "v"};
  const rule::Descriptor descriptor{.entries = {&entry, 1}, .cost = 5};
  const Request request{"d", {&descriptor, 1}};
  const Instant arrived = now;
  EXPECT_TRUE(checker.Check(request, response, arrived, &question).ok());
  EXPECT_TRUE(response.waiting);
  now += 1h;
  shared.AnswerAll();
  EXPECT_TRUE(checker.Continue(question, response, arrived).ok());
  EXPECT_EQ(mode(), Mode::kLocal);
  EXPECT_TRUE(response.allowed) << "in the window that has begun in the meantime";
}

TEST_F(SharedDeciderTest, ARuleMaySetItsFallbackShare) {
  shared.failure = absl::DeadlineExceededError("late");
  shared.instance_count = 50;
  EXPECT_TRUE(Allowed({"fifth"}, 2));
  EXPECT_FALSE(Allowed({"fifth"}, 1));
}

TEST_F(SharedDeciderTest, ALocalShareBeginsWithAPartOfTheLastKnownRest) {
  shared.instance_count = 2;
  EXPECT_TRUE(Allowed({"fifth"}, 6));  // 4 of 10 are left
  shared.failure = absl::UnavailableError("gone");
  EXPECT_FALSE(Allowed({"fifth"}, 1)) << "a fifth of 4 is less than one";
  now += 2s;  // 10 per 20 s, of which a fifth
  EXPECT_FALSE(Allowed({"fifth"}, 1));
  now += 8s;
  EXPECT_TRUE(Allowed({"fifth"}, 1));
}

TEST_F(SharedDeciderTest, LocalAdmissionsAreTakenFromTheStoreAfterwards) {
  EXPECT_TRUE(Allowed({"five"}, 1));  // 4 of 5 are left
  shared.failure = absl::UnavailableError("gone");
  EXPECT_TRUE(Allowed({"five"}, 2));
  EXPECT_TRUE(Allowed({"five"}, 1));
  shared.failure = absl::OkStatus();
  EXPECT_LE(fleet.next_wake(), shared.Now() + 500ms) << "no request for the key is needed";
  SettleDebts();
  EXPECT_EQ(Remaining("five"), 1u);
  const size_t asked = shared.names().size();
  SettleDebts();
  EXPECT_EQ(shared.names().size(), asked) << "once";
  EXPECT_EQ(fleet.debts().owed.value(), 3u);
  EXPECT_EQ(fleet.debts().settled.value(), 3u);
  EXPECT_EQ(fleet.next_wake(), base::BootTime{INT64_MAX});
}

TEST_F(SharedDeciderTest, APeekNeverCreatesADebt) {
  shared.failure = absl::UnavailableError("gone");
  EXPECT_TRUE(Allowed({"five"}, 2));
  shared.failure = absl::OkStatus();
  for (int i = 0; i < 50; ++i) EXPECT_EQ(Remaining("five"), 5u);
  EXPECT_EQ(shared.names().size(), 51u);
}

TEST_F(SharedDeciderTest, AdmissionsThatTimeHasPaidAreNotTaken) {
  shared.failure = absl::UnavailableError("gone");
  EXPECT_TRUE(Allowed({"two"}, 1));  // 2 per 20 s
  now += 10s;
  shared.failure = absl::OkStatus();
  SettleDebts();
  EXPECT_EQ(shared.names().size(), 1u);
  EXPECT_EQ(Remaining("two"), 2u);
}

TEST_F(SharedDeciderTest, AnUnsettledDebtIsStillOwed) {
  EXPECT_TRUE(Allowed({"five"}, 1));  // 4 of 5 are left
  shared.failure = absl::UnavailableError("gone");
  EXPECT_TRUE(Allowed({"five"}, 3));
  const size_t asked = shared.names().size();
  for (int i = 0; i < 10; ++i) SettleDebts();
  EXPECT_LE(shared.names().size() - asked, 11u) << "one attempt each half second";
  shared.failure = absl::OkStatus();
  SettleDebts();
  EXPECT_EQ(Remaining("five"), 1u);
}

TEST_F(SharedDeciderTest, ADebtThatMayHaveBeenSettledIsNotTakenTwice) {
  shared.failure = absl::UnavailableError("gone");
  EXPECT_TRUE(Allowed({"five"}, 3));
  shared.failure = absl::DeadlineExceededError("no answer");
  SettleDebts();
  shared.failure = absl::OkStatus();
  SettleDebts();
  EXPECT_EQ(Remaining("five"), 5u) << "the manual store has not executed the call";
}

TEST_F(SharedDeciderTest, ADebtBeyondTheRestOfTheBucketLeavesItOverdrawn) {
  shared.failure = absl::UnavailableError("gone");
  EXPECT_TRUE(Allowed({"five"}, 3));
  shared.failure = absl::OkStatus();
  EXPECT_TRUE(Allowed({"five"}, 4));
  SettleDebts();
  EXPECT_EQ(Remaining("five"), 0u);
  EXPECT_TRUE(response.descriptors[0].decision.overdrawn);
  EXPECT_EQ(fleet.debts().settled.value(), 3u);
}

TEST_F(SharedDeciderTest, DebtsKeepTheirLimitWhenTheRulesChange) {
  shared.failure = absl::UnavailableError("gone");
  EXPECT_TRUE(Allowed({"five"}, 2));
  shared.failure = absl::OkStatus();
  std::string changed(kRules);
  const size_t at = changed.find("requests_per_unit: 5", changed.find("key: five"));
  changed[at + std::string_view("requests_per_unit: ").size()] = '6';
  Publish(changed);
  now += 600ms;
  fleet.OnTime();
  ASSERT_EQ(shared.waiting(), 1u);
  EXPECT_EQ(shared.oldest().limit->limit.capacity(), 5u);
  EXPECT_TRUE(shared.oldest().keeps_limit) << "others have carried the bucket over";
  EXPECT_TRUE(shared.oldest().history.empty());
  shared.AnswerAll();
}

TEST_F(SharedDeciderTest, AnUnstableStoreAddsNothingToTheLimit) {
  for (int i = 0; i < 5; ++i) {
    shared.failure = absl::UnavailableError("gone");
    Allowed({"five"}, 1);
    shared.failure = absl::OkStatus();
    SettleDebts();
    EXPECT_TRUE(Ask(Operation::kPeek, {"five"}).ok());
  }
  EXPECT_EQ(Remaining("five"), 0u);
  shared.failure = absl::UnavailableError("gone");
  EXPECT_FALSE(Allowed({"five"}, 1));
}

TEST_F(SharedDeciderTest, ABucketWithAnOldRestCountsAsFull) {
  shared.instance_count = 1;
  EXPECT_TRUE(Allowed({"two"}, 2));
  now += 20s;
  shared.failure = absl::UnavailableError("gone");
  EXPECT_TRUE(Allowed({"two"}, 2));
}

TEST_F(SharedDeciderTest, WithoutTheStoreARuleMayAllowOrDeny) {
  shared.failure = absl::UnavailableError("gone");
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Allowed({"open"}));
  EXPECT_EQ(mode(), Mode::kOpen);
  EXPECT_EQ(response.descriptors[0].decision.remaining, 2u);
  const absl::Status refused = Ask(Operation::kTake, {"closed"});
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("rule closed"));
  EXPECT_EQ(response.descriptors[0].outcome, Outcome::kUnavailable);
  EXPECT_FALSE(response.allowed);
}

TEST_F(SharedDeciderTest, AnInvalidCallIsNotAnOutage) {
  shared.failure = absl::UnimplementedError("CROSSSLOT");
  EXPECT_EQ(Ask(Operation::kTake, {"open"}).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Ask(Operation::kTake, {"two"}).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(mode(), Mode::kClosed);
}

TEST_F(SharedDeciderTest, AFailedRefundOrResetIsReported) {
  shared.failure = absl::UnavailableError("gone");
  EXPECT_EQ(Ask(Operation::kRefund, {"open"}).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Ask(Operation::kReset, {"two"}).code(), absl::StatusCode::kUnavailable);
}

TEST_F(SharedDeciderTest, NoRequestWaitsWhileTheStoreIsKnownToBeDown) {
  shared.failure = absl::UnavailableError("gone");
  shared.at_once = true;
  EXPECT_TRUE(Allowed({"open", "two"}));
  EXPECT_EQ(ready, 0);
}

TEST_F(SharedDeciderTest, ARequestThatWaitsIsDecidedByTheRulesOfItsArrival) {
  const rule::Entry entry{"two", "v"};
  const rule::Descriptor descriptor{.entries = {&entry, 1}};
  const Request request{"d", {&descriptor, 1}};
  EXPECT_TRUE(checker.Check(request, response, now, &question).ok());
  EXPECT_TRUE(limiter.OnRules(rule::read::LoadRules({}, {}).rules, now).ok());
  shared.AnswerAll();
  EXPECT_TRUE(checker.Continue(question, response, now).ok());
  ASSERT_NE(response.descriptors[0].rule, nullptr);
  EXPECT_EQ(response.descriptors[0].rule->label(), "two");
  EXPECT_TRUE(checker.Check(request, response, now, &question).ok());
  EXPECT_FALSE(response.waiting);
  EXPECT_EQ(response.descriptors[0].outcome, Outcome::kNoRule);
}

TEST_F(SharedDeciderTest, AnAnswerToAConversationThatHasEndedIsDropped) {
  const rule::Entry entry{"two", "v"};
  const rule::Descriptor descriptor{.entries = {&entry, 1}};
  int woken = 0;
  {
    Question gone([&] { ++woken; });
    EXPECT_TRUE(checker.Check({"d", {&descriptor, 1}}, response, now, &gone).ok());
  }
  shared.AnswerAll();
  EXPECT_EQ(woken, 0);
  EXPECT_EQ(Remaining("two"), 1u);
}

class LeasingFleetTest : public SharedDeciderTest {
 protected:
  LeasingFleetTest() : SharedDeciderTest({.leases = &books}) {}

  lease::LeaseBooks books{{.node = 1, .keys_max = 64}, 1};
};

TEST_F(LeasingFleetTest, TheSecondRequestGetsALeaseAndTheThirdIsDecidedFromIt) {
  for (uint64_t left : {99u, 98u}) {
    EXPECT_TRUE(Allowed({"hundred"}));
    EXPECT_EQ(mode(), Mode::kExact);
    EXPECT_EQ(response.descriptors[0].decision.remaining, left);
  }
  EXPECT_EQ(shared.names().size(), 2u) << "one message for the lease and the decision";
  EXPECT_TRUE(Allowed({"hundred"}));
  EXPECT_EQ(mode(), Mode::kLeased);
  EXPECT_EQ(response.descriptors[0].decision.remaining, 97u);
  EXPECT_EQ(fleet.decisions(Mode::kLeased), 1u);
}

TEST_F(LeasingFleetTest, ARequestThatWaitsForALeaseIsDeniedIfNoneIsGranted) {
  EXPECT_TRUE(Allowed({"hour"}, 8));
  EXPECT_FALSE(Allowed({"hour"}));
  EXPECT_EQ(response.descriptors[0].decision.retry_after, 2800s) << "when the window ends";
}

TEST_F(LeasingFleetTest, RequestsThatWaitForALeaseAreEachDecidedOnce) {
  int allowed = 0;
  for (int i = 0; i < 30; ++i) allowed += Allowed({"hundred"}, 7) ? 1 : 0;
  EXPECT_EQ(allowed, 14) << "100 of 7";
}

TEST_F(LeasingFleetTest, WithoutTheStoreWaitingRequestsAreLimitedToThisInstancesShare) {
  EXPECT_TRUE(Allowed({"hundred"}));
  shared.failure = absl::UnavailableError("gone");
  EXPECT_TRUE(Allowed({"hundred"}));
  EXPECT_EQ(mode(), Mode::kLocal);
}

TEST_F(LeasingFleetTest, LocalAdmissionsAreAlsoTakenFromALeasedBucket) {
  EXPECT_TRUE(Allowed({"hundred"}));
  shared.failure = absl::UnavailableError("gone");
  EXPECT_TRUE(Allowed({"hundred"}));
  shared.failure = absl::OkStatus();
  now += 50ms;
  EXPECT_TRUE(Allowed({"hundred"}));
  EXPECT_GT(books.totals().held, 0u);
  SettleDebts();
  EXPECT_TRUE(Ask(Operation::kPeek, {"hundred"}).ok());
  EXPECT_EQ(response.descriptors[0].decision.remaining, 97u);
}

// Leases requested in the background tell the rest of the bucket.
TEST_F(LeasingFleetTest, ALocalShareOfAHotKeyUsesARecentRest) {
  for (int i = 0; i < 80; ++i) EXPECT_TRUE(Allowed({"hundred"}));
  shared.AnswerAll();
  const uint64_t held = books.totals().held;
  const uint64_t left = 20 - held;
  shared.failure = absl::UnavailableError("gone");
  uint64_t passed = 0;
  for (int i = 0; i < 40; ++i) passed += Allowed({"hundred"}) && mode() == Mode::kLocal ? 1u : 0u;
  EXPECT_LE(passed, left);
}

// Without requests, its bucket would be full again within 4 s, but requests come all the time.
TEST_F(LeasingFleetTest, WithoutTheStoreAKeyThatWasHotForLongDoesNotBeginWithAFullBucket) {
  const auto load = [&](base::Duration time) {
    int passed = 0;
    for (const Instant end = now + time; now < end; now += 4ms) {
      passed += Allowed({"busy"}) && mode() == Mode::kLocal ? 1 : 0;
      fleet.OnTime();
      shared.AnswerAll();
    }
    return passed;
  };
  EXPECT_EQ(load(12s), 0);
  EXPECT_GT(fleet.decisions(Mode::kLeased), 200u);
  shared.failure = absl::UnavailableError("gone");
  EXPECT_LE(load(3s), 80) << "the refill of the share, and the small rest";
  EXPECT_GE(load(4s), 90);
}

TEST_F(LeasingFleetTest, AnEndedWindowLeavesNoDebtInTheNext) {
  for (int i = 0; i < 30; ++i) Allowed({"hour"});
  shared.AnswerAll();
  now += 3600s;
  shared.failure = absl::UnavailableError("gone");
  EXPECT_TRUE(Allowed({"hour"}, 8));
  EXPECT_EQ(mode(), Mode::kLocal);
}

TEST_F(LeasingFleetTest, ADeniedGroupIsRefundedOnce) {
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Allowed({"pair"}));
  for (int i = 0; i < 30; ++i) EXPECT_FALSE(Allowed({"pair"}));
  const std::string bucket = "hg:{r|d|pair=v#0}";
  const uint64_t left = shared.Remaining(
      bucket, *shared.limits().Intern(*algorithm::Limit::Make({.requests = 1000, .period = 1h})));
  EXPECT_EQ(left + books.totals().held, 990u);
}

TEST_F(LeasingFleetTest, AGroupAlsoTakesFromLeases) {
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Allowed({"hundred", "five"}));
  EXPECT_TRUE(Allowed({"hundred"}, 20));
}

TEST(BucketName, IsReadableAndUnique) {
  const BucketNaming naming;
  const auto rule_name = [&](std::vector<rule::Entry> entries, std::string_view domain = "edge") {
    rule::Match match;
    match.step_count = static_cast<uint32_t>(entries.size());
    for (size_t i = 0; i < entries.size(); ++i) match.steps[i] = {};
    std::string name;
    AppendRuleBucket(naming, domain, entries, match, 1, name);
    return name;
  };
  EXPECT_EQ(rule_name({{"api_key", "k1"}, {"path", "/search*"}}),
            "hg:{r|edge|api_key=k1|path=/search*#1}");
  EXPECT_EQ(rule_name({{"k", "}x{"}}), "hg:{r|edge|k=%7dx%7b#1}");
  EXPECT_EQ(rule_name({{"k", "a|b=c#0%"}}), "hg:{r|edge|k=a%7cb%3dc%230%25#1}");
  EXPECT_EQ(rule_name({{"k", std::string_view("\0\xff ", 3)}}), "hg:{r|edge|k=%00%ff%20#1}");
  std::string throttle;
  AppendThrottleBucket(naming, "user123", throttle);
  EXPECT_EQ(throttle, "hg:{t|user123}");
  std::string override_name;
  const rule::Entry entry{"k", "v"};
  AppendOverrideBucket(naming, "edge", {&entry, 1}, rule::Unit::kMinute, override_name);
  EXPECT_EQ(override_name, "hg:{o|edge|k=v#minute}");
}

TEST(BucketName, IsAHashIfNamesAreSecret) {
  std::string secret;
  AppendThrottleBucket({.hashed = true}, "user123", secret);
  EXPECT_THAT(secret, ::testing::MatchesRegex("hg:\\{h\\|[0-9a-f]{32}\\}"));
}

}  // namespace shared_decider_test
}  // namespace headgate::limiter::shared
