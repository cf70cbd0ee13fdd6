// Rules that limit concurrency, as a checker decides them: in the memory of the process, and in a
// shared store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <optional>

#include "headgate/base/hash_rig.h"
#include "headgate/limiter/checker.h"
#include "headgate/limiter/shared/shared_decider.h"
#include "headgate/rule/read/load.h"
#include "headgate/store/memory.h"
#include "headgate/testing/manual_shared_store.h"

namespace headgate::limiter {
namespace request_permits_test {

using base::Instant;
using ::testing::ElementsAre;
using testing::ManualSharedStore;
using namespace std::chrono_literals;
using Event = PermitEvent::Kind;

constexpr Instant kStart = Instant::FromNanos(1'790'000'000'000'000'000);

// The words of the descriptors.
constexpr std::string_view kRules = R"(
domain: d
descriptors:
- key: pool
  rate_limit: {algorithm: concurrency, requests: 2, ttl: 30s}
- key: both
  rate_limits:
  - {algorithm: concurrency, requests: 2, ttl: 30s}
  - {period: 1h, requests_per_unit: 3}
- key: none
  rate_limit: {algorithm: concurrency, requests: 0, ttl: 30s}
- key: shade
  shadow_mode: true
  rate_limit: {algorithm: concurrency, requests: 1, ttl: 30s}
- key: plain
  rate_limit: {period: 1h, requests_per_unit: 2}
- key: deny
  rate_limit: {algorithm: concurrency, requests: 4, ttl: 30s, on_store_failure: deny}
- key: allow
  rate_limit: {algorithm: concurrency, requests: 4, ttl: 30s, on_store_failure: allow}
)";

class EventCounts final : public Observer {
 public:
  uint32_t OnRule(const rule::Rule&) override { return 0; }
  uint32_t OnConcurrency(const rule::Rule& rule) override { return rule.index; }
  void OnDecision(uint32_t, const DecisionEvent& event) override { ++outcomes[event.outcome]; }
  void OnOwnLimits(uint32_t, Outcome, uint64_t) override {}
  void OnPermits(uint32_t, const PermitEvent& event) override { events[event.kind] += event.count; }

  std::map<Outcome, uint64_t> outcomes;
  std::map<Event, uint64_t> events;
};

class PermitsTest : public ::testing::Test {
 protected:
  PermitsTest() { Publish(kRules); }

  void Publish(std::string_view text) {
    const std::vector<rule::read::RuleFile> files{{.name = "f.yaml", .text = std::string(text)}};
    const rule::read::LoadResult loaded = rule::read::LoadRules(files);
    ASSERT_TRUE(loaded.ok()) << rule::Describe(loaded.problems);
    ASSERT_TRUE(limiter.OnRules(loaded.rules, now).ok());
  }

  // A request with one descriptor for each key, `key=value`.
  struct Call {
    std::deque<rule::Entry> entries;
    std::vector<rule::Descriptor> descriptors;
    Request request{.domain = "d", .descriptors = {}};

    explicit Call(const std::vector<std::string_view>& keys, std::optional<uint64_t> cost = {}) {
      for (const std::string_view key : keys) {
        entries.push_back({.key = key, .value = "v"});
        descriptors.push_back(
            {.entries = {&entries.back(), 1}, .cost = cost, .override_limit = {}});
      }
      request.descriptors = descriptors;
    }
  };

  const Response& Ask(const std::vector<std::string_view>& keys, PermitHold* hold,
                      Operation operation = Operation::kTake) {
    Call call(keys);
    call.request.permits = hold;
    call.request.operation = operation;
    EXPECT_TRUE(checker.Check(call.request, response, now).ok());
    return response;
  }
  bool Passes(const std::vector<std::string_view>& keys, PermitHold* hold) {
    return Ask(keys, hold).allowed;
  }
  uint64_t Left(std::string_view key) {
    return Ask({key}, nullptr, Operation::kPeek).descriptors[0].decision.remaining;
  }
  bool Release(const std::vector<std::string_view>& keys, const permit::Id& id) {
    const Call call(keys);
    EXPECT_TRUE(checker.Release(call.request, id, released, now).ok());
    return released.descriptors[0].was_held;
  }

  Instant now = kStart;
  store::MemoryStore store{{.max_buckets = 1000, .secret = base::SecretFromSeed(1)}};
  EventCounts counts;
  Limiter limiter{store, &counts};
  Checker checker{limiter};
  Response response;
  Released released;
};

TEST_F(PermitsTest, ADeniedRequestIsToldToWaitAsLongAsTheOldestHasBeenInFlight) {
  PermitHold first, second, third;
  EXPECT_TRUE(Passes({"pool"}, &first));
  EXPECT_TRUE(Passes({"pool"}, &second));
  for (const auto& [passed, expected] : {std::pair{0s, 1s}, {4s, 4s}, {20s, 10s}}) {
    now = kStart + passed;
    EXPECT_FALSE(Passes({"pool"}, &third));
    EXPECT_EQ(response.descriptors[0].decision.retry_after, expected)
        << "at least a second, and no longer than until its permit ends";
  }
}

TEST_F(PermitsTest, ARequestHoldsItsPermitUntilItEnds) {
  PermitHold first, second, third;
  EXPECT_TRUE(Passes({"pool"}, &first));
  EXPECT_EQ(response.descriptors[0].decision.remaining, 1u);
  EXPECT_TRUE(Passes({"pool"}, &second));
  EXPECT_FALSE(Passes({"pool"}, &third));
  EXPECT_TRUE(third.empty());
  EXPECT_EQ(response.descriptors[0].outcome, Outcome::kDenied);
  EXPECT_EQ(response.descriptors[0].decision.retry_after, 1s) << "they have only just begun";
  EXPECT_EQ(response.concurrency->in_flight, 2u);
  first.Release(now);
  EXPECT_TRUE(Passes({"pool"}, &third));
  EXPECT_EQ(counts.events[Event::kTaken], 3u);
  EXPECT_EQ(counts.events[Event::kRefused], 1u);
  EXPECT_EQ(counts.events[Event::kGivenBack], 1u);
  EXPECT_EQ(counts.outcomes[Outcome::kAllowed], 3u);
  EXPECT_EQ(counts.outcomes[Outcome::kDenied], 1u);
}

TEST_F(PermitsTest, TheHoldGivesBackWhenItIsDestroyedOrMovedOver) {
  {
    PermitHold hold;
    Passes({"pool"}, &hold);
    PermitHold moved = std::move(hold);
    EXPECT_EQ(Left("pool"), 1u);
    moved = PermitHold();
    EXPECT_EQ(Left("pool"), 2u);
    Passes({"pool"}, &moved);
  }
  EXPECT_EQ(Left("pool"), 2u);
  EXPECT_EQ(limiter.permits().CountAt(now), 0u);
}

TEST_F(PermitsTest, AHoldMayOutliveItsChecker) {
  PermitHold hold;
  {
    Checker other(limiter);
    const Call call({"pool"});
    Request request = call.request;
    request.permits = &hold;
    ASSERT_TRUE(other.Check(request, response, now).ok());
  }
  hold.Release(now);
  // Nobody was there to give it back, so it ends by itself.
  EXPECT_EQ(Left("pool"), 1u);
  now += 30s;
  EXPECT_EQ(Left("pool"), 2u);
}

TEST_F(PermitsTest, APermitThatEndedBeforeTheRequestIsCounted) {
  PermitHold hold;
  Passes({"pool"}, &hold);
  now += 31s;
  hold.Release(now);
  EXPECT_EQ(counts.events[Event::kEnded], 1u);
  EXPECT_EQ(counts.events[Event::kExpired], 1u);
  EXPECT_EQ(counts.events[Event::kGivenBack], 0u);
}

TEST_F(PermitsTest, WithoutAHoldARuleIsOnlyLookedAt) {
  PermitHold first, second;
  EXPECT_TRUE(Passes({"pool"}, nullptr));
  EXPECT_TRUE(Passes({"pool"}, nullptr));
  EXPECT_TRUE(Passes({"pool"}, nullptr));
  EXPECT_EQ(counts.events[Event::kPeekedAt], 3u);
  Passes({"pool"}, &first);
  Passes({"pool"}, &second);
  EXPECT_FALSE(Passes({"pool"}, nullptr));
  EXPECT_EQ(Left("pool"), 0u);
}

TEST_F(PermitsTest, ARequestThatCostsNothingLooksToo) {
  PermitHold hold;
  Call call({"pool"}, 0);
  call.request.permits = &hold;
  ASSERT_TRUE(checker.Check(call.request, response, now).ok());
  EXPECT_TRUE(response.allowed);
  EXPECT_TRUE(hold.empty());
}

TEST_F(PermitsTest, ABucketThatDeniesGivesThePermitBack) {
  for (int i = 0; i < 3; ++i) {
    PermitHold hold;
    EXPECT_TRUE(Passes({"both"}, &hold));
  }
  PermitHold hold;
  EXPECT_FALSE(Passes({"both"}, &hold));
  EXPECT_TRUE(hold.empty());
  EXPECT_EQ(limiter.permits().CountAt(now), 0u);
}

TEST_F(PermitsTest, WhereThePermitIsRefusedTheBucketsKeepWhatTheyHave) {
  PermitHold first, second, third;
  Passes({"both"}, &first);
  Passes({"both"}, &second);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(Passes({"both"}, &third));
  first.Release(now);
  // Two of three were taken.
  EXPECT_TRUE(Passes({"both"}, &third));
  EXPECT_EQ(response.descriptors[0].decision.remaining, 0u);
}

TEST_F(PermitsTest, ARefusedPermitDeniesTheWholeRequestAndItsOtherPermits) {
  PermitHold first, second;
  Passes({"pool"}, &first);
  Passes({"pool"}, &second);
  PermitHold hold;
  EXPECT_FALSE(Passes({"deny", "pool", "plain"}, &hold));
  EXPECT_TRUE(hold.empty());
  EXPECT_EQ(Left("deny"), 4u);
  // As between other rules: the one that allowed has counted.
  EXPECT_EQ(Left("plain"), 1u);
}

TEST_F(PermitsTest, InAnAllOrNothingDomainARefusedPermitSparesAllBuckets) {
  Publish(std::string(kRules) + "all_or_nothing: true\n");
  PermitHold first, second, hold;
  Passes({"pool"}, &first);
  Passes({"pool"}, &second);
  EXPECT_FALSE(Passes({"plain", "pool"}, &hold));
  EXPECT_EQ(Left("plain"), 2u);
  first.Release(now);
  EXPECT_TRUE(Passes({"plain", "pool"}, &hold));
  EXPECT_EQ(Left("plain"), 1u);
}

TEST_F(PermitsTest, TwoDescriptorsOfOneKeyTakeOnePermit) {
  PermitHold hold;
  EXPECT_TRUE(Passes({"pool", "pool"}, &hold));
  EXPECT_EQ(Left("pool"), 1u);
  hold.Release(now);
  EXPECT_EQ(Left("pool"), 2u);
  EXPECT_EQ(counts.events[Event::kGivenBack], 1u);
}

TEST_F(PermitsTest, ALimitOfNothingDeniesForEver) {
  PermitHold hold;
  EXPECT_FALSE(Passes({"none"}, &hold));
  EXPECT_EQ(response.descriptors[0].outcome, Outcome::kNeverFits);
}

TEST_F(PermitsTest, ARuleInShadowCountsAndLetsThrough) {
  PermitHold first, second;
  EXPECT_TRUE(Passes({"shade"}, &first));
  EXPECT_TRUE(Passes({"shade"}, &second));
  EXPECT_EQ(response.descriptors[0].outcome, Outcome::kShadowDenied);
  EXPECT_TRUE(second.empty());
  EXPECT_FALSE(response.concurrency.has_value());
}

TEST_F(PermitsTest, AnIdHoldsOnePermitAndTakesFromTheBucketsOnce) {
  const permit::Id id{.low = 5, .high = 6};
  for (int i = 0; i < 3; ++i) {
    PermitHold hold(id);
    EXPECT_TRUE(Passes({"both"}, &hold));
    hold.Keep();
  }
  EXPECT_EQ(Left("both"), 1u);  // of the permits
  EXPECT_EQ(limiter.permits().CountAt(now), 1u);
  EXPECT_TRUE(Release({"both"}, id));
  EXPECT_EQ(released.descriptors[0].decision.remaining, 2u);
  EXPECT_FALSE(Release({"both"}, id));
  EXPECT_EQ(Left("both"), 2u);  // of the buckets as well: three less one
  EXPECT_EQ(counts.events[Event::kAcquired], 1u);
  EXPECT_EQ(counts.events[Event::kReleased], 1u);
  EXPECT_EQ(counts.events[Event::kUnknown], 1u);
}

// A client renews for as long as its request lasts, which has passed once.
TEST_F(PermitsTest, ARenewalTakesFromNoBucketOfTheRequest) {
  const permit::Id id{.low = 5, .high = 6};
  const auto acquire = [&](const std::vector<std::string_view>& keys) {
    PermitHold hold(id);
    const bool passes = Passes(keys, &hold);
    hold.Keep();
    return passes;
  };
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(acquire({"plain", "pool", "both"}));
    now += 20s;
  }
  EXPECT_EQ(Left("plain"), 1u);
  // The bucket is empty, and the request goes on all the same.
  EXPECT_TRUE(Passes({"plain"}, nullptr));
  EXPECT_TRUE(acquire({"plain", "pool", "both"}));
  EXPECT_TRUE(Release({"pool", "both"}, id));
  EXPECT_FALSE(acquire({"plain", "pool", "both"}));
  EXPECT_EQ(limiter.permits().CountAt(now), 0u);
}

TEST_F(PermitsTest, AnIdMayEndSoonerThanTheRuleSaysButNotLater) {
  PermitHold sooner({.low = 1, .high = 0}, 5s);
  Passes({"pool"}, &sooner);
  EXPECT_EQ(response.concurrency->ttl, 5s);
  sooner.Keep();
  PermitHold later({.low = 2, .high = 0}, 1h);
  Passes({"pool"}, &later);
  EXPECT_EQ(response.concurrency->ttl, 30s);
  later.Keep();
  now += 5s;
  EXPECT_EQ(Left("pool"), 1u);
  now += 25s;
  EXPECT_EQ(Left("pool"), 2u);
}

TEST_F(PermitsTest, AResetReleasesAllAndARefundNone) {
  PermitHold first, second;
  Passes({"pool"}, &first);
  Passes({"pool"}, &second);
  EXPECT_TRUE(Ask({"pool"}, nullptr, Operation::kRefund).allowed);
  EXPECT_FALSE(response.descriptors[0].has_decision());
  EXPECT_EQ(Left("pool"), 0u);
  EXPECT_TRUE(Ask({"pool"}, nullptr, Operation::kReset).allowed);
  EXPECT_EQ(response.descriptors[0].decision.remaining, 2u);
  EXPECT_EQ(Left("pool"), 2u);
}

TEST_F(PermitsTest, ALoweredLimitLetsThoseInFlightEnd) {
  PermitHold first, second, third;
  Passes({"pool"}, &first);
  Passes({"pool"}, &second);
  std::string lower(kRules);
  lower.replace(lower.find("requests: 2"), 11, "requests: 1");
  Publish(lower);
  EXPECT_FALSE(Passes({"pool"}, &third));
  EXPECT_EQ(response.concurrency->max, 1u);
  EXPECT_EQ(response.concurrency->in_flight, 2u);
  first.Release(now);
  EXPECT_FALSE(Passes({"pool"}, &third));
  EXPECT_EQ(response.concurrency->in_flight, 1u);
  second.Release(now);
  EXPECT_TRUE(Passes({"pool"}, &third));
}

TEST_F(PermitsTest, AReleaseTellsHowManyRequestsAreInFlightAboveTheLimit) {
  for (const uint64_t id : {1u, 2u, 3u}) {
    PermitHold hold({.low = id, .high = 0});
    Passes({"deny"}, &hold);
    hold.Keep();
  }
  std::string lower(kRules);
  lower.replace(lower.find("requests: 4"), 11, "requests: 1");
  Publish(lower);
  EXPECT_TRUE(Release({"deny"}, {.low = 1, .high = 0}));
  EXPECT_EQ(released.descriptors[0].in_flight, 2u);
  EXPECT_EQ(released.descriptors[0].decision.limit, 1u);
}

// ---- The same over a shared store.
class SharedPermitsTest : public PermitsTest {
 protected:
  // Asks to the end; counts how often the request was woken.
  bool Decide(const std::vector<std::string_view>& keys, PermitHold* hold) {
    Call call(keys);
    call.request.permits = hold;
    status = shared_checker.Check(call.request, response, now, &question);
    while (response.waiting) {
      shared.AnswerAll();
      status = shared_checker.Continue(question, response, now);
    }
    return status.ok() && response.allowed;
  }
  Mode mode() const { return response.descriptors[0].mode; }
  uint32_t Held(std::string_view key) {
    return shared.PermitsIn("hg:{p|d|" + std::string(key) + "=v}");
  }

  ManualSharedStore shared{store, now};
  permit::PermitTable local;
  shared::SharedDecider decider{shared, store, {.permits = &local}};
  Checker shared_checker{limiter, 0, decider, {}};
  int woken = 0;
  Question question{[this] { ++woken; }};
  absl::Status status;
};

TEST_F(SharedPermitsTest, TheStoreGrantsAndTakesBack) {
  PermitHold first, second, third;
  EXPECT_TRUE(Decide({"pool"}, &first));
  EXPECT_EQ(mode(), Mode::kExact);
  EXPECT_EQ(woken, 1);
  EXPECT_TRUE(Decide({"pool"}, &second));
  EXPECT_FALSE(Decide({"pool"}, &third));
  EXPECT_EQ(Held("pool"), 2u);
  first.Release(now);
  shared.AnswerAll();
  EXPECT_EQ(Held("pool"), 1u);
  EXPECT_EQ(counts.events[Event::kGivenBack], 1u);
  EXPECT_THAT(std::vector(shared.names().begin(), shared.names().begin() + 1),
              ElementsAre("hg:{p|d|pool=v}"));
}

TEST_F(SharedPermitsTest, BucketsAreAskedAfterThePermitAndGiveItBackIfTheyDeny) {
  for (int i = 0; i < 3; ++i) {
    PermitHold hold;
    EXPECT_TRUE(Decide({"both"}, &hold));
    hold.Release(now);
    shared.AnswerAll();
  }
  PermitHold hold;
  EXPECT_FALSE(Decide({"both"}, &hold));
  EXPECT_TRUE(hold.empty());
  shared.AnswerAll();
  EXPECT_EQ(Held("both"), 0u);
}

TEST_F(SharedPermitsTest, ARequestThatAsksTheStoreSeveralTimesIsCountedOnce) {
  PermitHold first, second, third;
  EXPECT_TRUE(Decide({"both"}, &first));
  EXPECT_TRUE(Decide({"both"}, nullptr));
  EXPECT_EQ(counts.events[Event::kPeekedAt], 1u);
  EXPECT_EQ(counts.events[Event::kRefused], 0u);
  EXPECT_TRUE(Decide({"both"}, &second));
  EXPECT_FALSE(Decide({"both"}, &third));
  EXPECT_EQ(counts.events[Event::kTaken], 2u);
  EXPECT_EQ(counts.events[Event::kRefused], 1u);
  EXPECT_FALSE(Decide({"both"}, nullptr));
  EXPECT_EQ(counts.events[Event::kPeekedAt], 2u);
  EXPECT_EQ(counts.events[Event::kRefused], 2u);
}

TEST_F(SharedPermitsTest, ARequestThatIsGivenUpGivesBackWhatItGetsLater) {
  {
    PermitHold hold;
    Question gone([] {});
    Call call({"pool"});
    call.request.permits = &hold;
    ASSERT_TRUE(shared_checker.Check(call.request, response, now, &gone).ok());
    ASSERT_TRUE(response.waiting);
  }
  shared.AnswerOne();
  EXPECT_EQ(Held("pool"), 1u);
  shared.AnswerAll();
  EXPECT_EQ(Held("pool"), 0u);
}

TEST_F(SharedPermitsTest, WithoutTheStoreThePolicyDecides) {
  shared.failure = absl::UnavailableError("away");
  shared.instance_count = 2;
  PermitHold first, second, allowed, denied;
  // Half of two, for two instances.
  EXPECT_TRUE(Decide({"pool"}, &first));
  EXPECT_EQ(mode(), Mode::kLocal);
  EXPECT_FALSE(Decide({"pool"}, &second));
  EXPECT_EQ(local.CountAt(now), 1u);
  first.Release(now);
  EXPECT_EQ(local.CountAt(now), 0u);
  EXPECT_TRUE(Decide({"allow"}, &allowed));
  EXPECT_EQ(mode(), Mode::kOpen);
  EXPECT_EQ(response.concurrency->ttl, 0s) << "no permit ends";
  EXPECT_FALSE(Decide({"deny"}, &denied));
  EXPECT_TRUE(absl::IsUnavailable(status));
}

// The permit was given before the limit was lowered to nothing.
TEST_F(SharedPermitsTest, AnIdRenewsItsPermitIfTheLimitIsLoweredToNothing) {
  const auto acquire = [&](uint64_t id) {
    PermitHold hold({.low = id, .high = 0});
    const bool passes = Decide({"allow"}, &hold);
    hold.Keep();
    return passes;
  };
  EXPECT_TRUE(acquire(1));
  std::string lower(kRules);
  lower.replace(lower.rfind("requests: 4"), 11, "requests: 0");
  Publish(lower);
  now += 20s;
  EXPECT_TRUE(acquire(1));
  EXPECT_EQ(mode(), Mode::kExact);
  EXPECT_EQ(response.concurrency->in_flight, 1u);
  EXPECT_FALSE(acquire(2));
  EXPECT_EQ(response.descriptors[0].outcome, Outcome::kNeverFits);
  now += 20s;
  EXPECT_EQ(Held("allow"), 1u) << "renewed";
  // The policy lets others pass without a permit, but a limit of nothing denies.
  shared.failure = absl::UnavailableError("away");
  EXPECT_FALSE(acquire(2));
  shared.failure = absl::OkStatus();
  // A request without an id can hold none.
  const size_t asked = shared.names().size();
  PermitHold nameless;
  EXPECT_FALSE(Decide({"allow"}, &nameless));
  EXPECT_EQ(shared.names().size(), asked);
  now += 30s;
  EXPECT_FALSE(acquire(1)) << "it has ended";
}

TEST_F(SharedPermitsTest, ThePartOfAnInstanceIsAtLeastOne) {
  shared.failure = absl::UnavailableError("away");
  shared.instance_count = 100;
  PermitHold first, second;
  EXPECT_TRUE(Decide({"pool"}, &first));
  EXPECT_FALSE(Decide({"pool"}, &second));
}

TEST_F(SharedPermitsTest, APermitThatMayHaveBeenGrantedIsGivenBack) {
  PermitHold hold;
  Call call({"pool"});
  call.request.permits = &hold;
  ASSERT_TRUE(shared_checker.Check(call.request, response, now, &question).ok());
  shared.failure = absl::DeadlineExceededError("slow");
  shared.AnswerOne();
  ASSERT_TRUE(shared_checker.Continue(question, response, now).ok());
  EXPECT_EQ(mode(), Mode::kLocal);
  ASSERT_EQ(shared.waiting(), 1u) << "the release";
  EXPECT_EQ(shared.oldest().name, "hg:{p|d|pool=v}");
}

TEST_F(SharedPermitsTest, AReleaseFindsAPermitThatWasGivenWithoutTheStore) {
  const permit::Id id{.low = 5, .high = 6};
  shared.failure = absl::UnavailableError("away");
  PermitHold hold(id);
  ASSERT_TRUE(Decide({"pool"}, &hold));
  hold.Keep();
  shared.failure = absl::OkStatus();
  const Call call({"pool"});
  ASSERT_TRUE(shared_checker.Release(call.request, id, released, now, &question).ok());
  ASSERT_TRUE(released.waiting);
  shared.AnswerAll();
  ASSERT_TRUE(shared_checker.ContinueRelease(question, released, now).ok());
  EXPECT_TRUE(released.descriptors[0].was_held);
  EXPECT_EQ(local.CountAt(now), 0u);
}

TEST_F(SharedPermitsTest, AReleaseThatTheStoreDoesNotAnswerIsAnError) {
  shared.failure = absl::UnavailableError("away");
  shared.at_once = true;
  const Call call({"pool"});
  EXPECT_TRUE(absl::IsUnavailable(
      shared_checker.Release(call.request, {.low = 1, .high = 1}, released, now, &question)));
}

}  // namespace request_permits_test
}  // namespace headgate::limiter
