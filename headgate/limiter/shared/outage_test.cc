// Tests of the knowledge of an instance about shared buckets when their store stops answering.
#include "headgate/limiter/shared/outage.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "headgate/testing/direct_fleet.h"

namespace headgate::limiter::shared {
namespace outage_test {

using namespace std::chrono_literals;

class Outage : public ::testing::Test, protected testing::DirectFleet {
 protected:
  store::LimitHandle limit =
      Intern({.requests = 10, .period = 1h, .burst = 7});  // exact: too small for leases
};

TEST_F(Outage, ALoopBeginsWithTheRestThatAnotherLoopWasTold) {
  SharedRests rests;
  SharedDecider first(shared, local, {.leases = &books, .rests = &rests, .loop = 0, .loops = 2});
  SharedDecider second(shared, local, {.leases = &books, .rests = &rests, .loop = 1, .loops = 2});
  EXPECT_TRUE(AskLoop(first, 1, limit, {}, 6));
  shared.failure = absl::UnavailableError("gone");
  EXPECT_TRUE(AskLoop(second, 1, limit));
  EXPECT_EQ(settled.mode, Mode::kLocal);
  EXPECT_FALSE(AskLoop(second, 1, limit)) << "one of seven was left";
}

// Two instances use a part of a limit evenly; then one of them decides alone.
void ExpectNobodyRefused(const algorithm::LimitSpec& spec, int percent, base::Duration phase) {
  SCOPED_TRACE(absl::StrCat(static_cast<int>(spec.algorithm), " at ", percent, " % after ",
                            phase / 1ms, " ms"));
  testing::DirectFleet world;
  SharedDecider instance(world.shared, world.local, {});
  world.shared.instance_count = 2;
  const store::LimitHandle limit = world.Intern(spec);
  const base::Instant begin = world.now - base::Duration(world.now.ns % spec.period.count());
  const base::Duration pace =
      2 * spec.period * 100 / (static_cast<int64_t>(spec.requests) * percent);
  for (world.now = begin; world.now < begin + 3 * spec.period + phase; world.now += pace) {
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(world.AskLoop(instance, 1, limit));
  }
  world.shared.failure = absl::UnavailableError("gone");
  int refused = 0;
  for (const base::Instant end = world.now + 3 * spec.period; world.now < end; world.now += pace) {
    refused += world.AskLoop(instance, 1, limit) ? 0 : 1;
    EXPECT_EQ(world.settled.mode, Mode::kLocal);
  }
  EXPECT_EQ(refused, 0);
}

TEST(LocalShare, RefusesNobodyWhoseDemandIsBelowTheShare) {
  using enum algorithm::Algorithm;
  for (const int percent : {50, 80}) {
    for (base::Duration phase = 0s; phase < 4s; phase += 700ms) {
      ExpectNobodyRefused({.algorithm = kSlidingWindowLog, .requests = 100, .period = 4s}, percent,
                          phase);
      ExpectNobodyRefused({.algorithm = kSlidingWindowCounter, .requests = 100, .period = 4s},
                          percent, phase);
      ExpectNobodyRefused({.algorithm = kFixedWindow, .requests = 100, .period = 4s}, percent,
                          phase);
      ExpectNobodyRefused({.algorithm = kFixedWindow,
                           .requests = 100,
                           .period = 4s,
                           .align = algorithm::Align::kFirstHit},
                          percent, phase);
      ExpectNobodyRefused({.algorithm = kTokenBucket, .requests = 100, .period = 4s}, percent,
                          phase);
    }
  }
}

// The store may have counted the request, and probably has if the answer was only late.
TEST_F(Outage, ARequestWhoseCallMayHaveBeenExecutedIsNotOwed) {
  for (const absl::Status& failure :
       {absl::DeadlineExceededError("late"), absl::AbortedError("closed")}) {
    shared.failure = failure;
    EXPECT_TRUE(Ask(1, limit));
    EXPECT_EQ(settled.mode, Mode::kLocal);
    EXPECT_EQ(fleet.debts().owed.value(), 0u);
  }
  shared.failure = absl::UnavailableError("gone");
  EXPECT_TRUE(Ask(1, limit));
  EXPECT_EQ(fleet.debts().owed.value(), 1u);
}

// A damaged bucket begins anew when it is reset.
TEST_F(Outage, NothingIsOwedToADamagedBucket) {
  shared.failure = absl::UnavailableError("gone");
  EXPECT_TRUE(Ask(1, limit));
  EXPECT_EQ(fleet.debts().owed.value(), 1u);
  shared.failure = absl::DataLossError("damaged");
  EXPECT_TRUE(Ask(1, limit));
  EXPECT_EQ(settled.mode, Mode::kLocal);
  EXPECT_EQ(fleet.debts().owed.value(), 1u);
}

// The message takes for one of them. If it was granted a lease after all, that is returned
// completely.
TEST_F(Outage, RequestsThatWaitedForAMessageThatFailedAreOwed) {
  const store::LimitHandle leased = Intern({.requests = 1000, .period = 1h});
  EXPECT_TRUE(Ask(1, leased));
  shared.failure = absl::DeadlineExceededError("late");
  Begin(1, leased, {}, 1, fleet);
  Pending second([] {});
  BatchEntry entry{
      .request = {.key = {1 * 0x9e3779b97f4a7c15, 1 * 0xc2b2ae3d27d4eb4f}, .limit = leased.get()},
      .terms = fleet.default_terms()};
  EXPECT_FALSE(fleet.Decide(
      {&entry, 1}, [](size_t, std::string& name) { name += "1"; }, &second, now));
  EXPECT_EQ(shared.waiting(), 1u);
  shared.AnswerAll();
  for (const Pending* one : {&pending, &second}) {
    EXPECT_TRUE(one->settled().front().decision.allowed);
    EXPECT_EQ(one->settled().front().mode, Mode::kLocal);
  }
  EXPECT_EQ(fleet.debts().owed.value(), 1u);
}

// An answer is given before it is heard, and no clock is faster than another by more than 1 in 64.
TEST(SharedRests, TellATimeOfTheStoreThatIsNotTooLate) {
  constexpr base::BootTime kHeard{50'000'000'000};
  constexpr base::Instant kAt = base::Instant::FromNanos(1'790'000'000'000'000'000);
  SharedRests rests;
  const base::Hash128 key{1, 2};
  EXPECT_FALSE(rests.StoreTimeAt(key, kHeard).has_value());
  rests.OnAnswer(key, {.remaining = 5, .full_at = kHeard, .at = kAt, .heard_at = kHeard});
  EXPECT_EQ(*rests.StoreTimeAt(key, kHeard), kAt);
  EXPECT_EQ(*rests.StoreTimeAt(key, kHeard + 640ms), kAt + 630ms);
  EXPECT_EQ(*rests.StoreTimeAt(key, kHeard - 640ms), kAt - 650ms);
  EXPECT_FALSE(rests.StoreTimeAt({2, 2}, kHeard).has_value());
}

TEST(SharedRests, ReturnTheRestOnlyOnce) {
  SharedRests rests;
  const base::Hash128 key{1, 2};
  const base::BootTime now{1'000'000'000};
  EXPECT_EQ(rests.Take(key, now), std::nullopt);
  rests.OnAnswer(key, {.remaining = 5, .full_at = now + 10s});
  EXPECT_EQ(rests.Take({1, 3}, now), std::nullopt);
  EXPECT_EQ(rests.Take(key, now), (LastRests::Rest{.remaining = 5, .full_at = now + 10s}));
  EXPECT_EQ(rests.Take(key, now), std::nullopt);
  rests.OnAnswer(key, {.remaining = 5, .full_at = now + 10s});
  EXPECT_EQ(rests.Take(key, now + 10s), std::nullopt) << "the bucket has had time to refill";
}

}  // namespace outage_test
}  // namespace headgate::limiter::shared
