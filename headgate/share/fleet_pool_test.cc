// The part of one instance in the pool of a fleet, with rounds that are carried out by hand.
#include "headgate/share/fleet_pool.h"

#include <chrono>
#include <string>

namespace headgate::share {
namespace fleet_pool_test {

using algorithm::FairSharePool;
using base::Duration;
using base::Instant;
using std::chrono::milliseconds;
using std::chrono::seconds;

Instant At(Duration d) { return Instant::FromNanos(0) + d; }

ShareOptions Forty() {
  return {.pool = {.capacity = 40, .cycle = seconds(10), .reservation = {1, 10}}};
}

struct FleetPoolTest : ::testing::Test {
  FleetPoolTest() {
    pool->OnNeed([this] { ++needs; });
  }

  PoolAnswer Ask(std::string_view client, Asking asking = {}, algorithm::Cost cost = 1) {
    return pool->Admit(client, cost, asking, now);
  }
  // A round that is written at once.
  void Round() {
    const FleetReport report = pool->BeginRound(now);
    const auto grants = ApplyRound(shared, report, report.generation == 1, 1, now);
    pool->EndRound(report, grants,
                   {.pool = shared, .generation = 1, .cycle_end = shared.cycle().end}, now);
  }

  Instant now = At(seconds(100));
  FairSharePool shared = *FairSharePool::Make(Forty().pool);
  std::unique_ptr<FleetPool> pool = *FleetPool::Make(Forty());
  int needs = 0;
};

TEST_F(FleetPoolTest, ARequestWithoutAPartWaitsForARound) {
  const PoolAnswer first = Ask("A");
  EXPECT_FALSE(first.admitted);
  EXPECT_NE(first.ticket, 0u);
  EXPECT_EQ(needs, 1);
  EXPECT_EQ(Ask("A", {.ticket = first.ticket}).ticket, first.ticket) << "no round has ended";
  Round();
  const PoolAnswer second = Ask("A", {.ticket = first.ticket});
  EXPECT_TRUE(second.admitted);
  EXPECT_EQ(second.limit, 40u);
  EXPECT_EQ(second.remaining, 39u);
  EXPECT_EQ(second.reset_after, seconds(10));
  EXPECT_EQ(shared.client(0).figures.demand_now, 1u) << "asked once";
}

TEST_F(FleetPoolTest, WhatARequestHasTakenThatWasNotSentMayBeSpentAgain) {
  const PoolAnswer first = Ask("A");
  Round();
  const PoolAnswer last = Ask("A", {.ticket = first.ticket, .is_last = true}, 1);
  ASSERT_TRUE(last.admitted);
  const uint64_t left = Ask("A", {}, 0).remaining;
  pool->OnEnd(last.number, /*was_sent=*/false, now);
  EXPECT_EQ(Ask("A", {}, 0).remaining, left + 1);
  const PoolAnswer again = Ask("A");
  ASSERT_TRUE(again.admitted);
  pool->OnEnd(again.number, /*was_sent=*/true, now);
  EXPECT_EQ(Ask("A", {}, 0).remaining, left);
  // Not in the next cycle.
  PoolAnswer late = Ask("A");
  Round();
  late = Ask("A", {.ticket = late.ticket});
  ASSERT_TRUE(late.admitted);
  now += seconds(10);
  Round();
  const uint64_t next = Ask("A", {}, 0).remaining;
  pool->OnEnd(late.number, /*was_sent=*/false, now);
  EXPECT_EQ(Ask("A", {}, 0).remaining, next);
}

TEST_F(FleetPoolTest, OnceAShareIsUsedUpRequestsAreRefusedAtOnce) {
  const PoolAnswer first = Ask("A");
  shared.AddDemand({.client = "A", .cost = 40}, now);
  EXPECT_EQ(shared.TakePart("A", 40), 40u) << "another instance";
  Round();
  const PoolAnswer refused = Ask("A", {.ticket = first.ticket});
  EXPECT_FALSE(refused.admitted);
  EXPECT_EQ(refused.ticket, 0u);
  EXPECT_EQ(refused.reason, Reason::kShareUsed);
  EXPECT_EQ(refused.retry_after, seconds(10));
  const int before = needs;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Ask("A").ticket, 0u);
  EXPECT_LE(needs, before + 1) << "their demand is reported with the next round";
  Round();
  EXPECT_EQ(shared.client(0).figures.demand_now, 141u);
}

TEST_F(FleetPoolTest, ARequestThatCannotWaitIsRefusedEarly) {
  const PoolAnswer verdict = Ask("A", {.is_last = true});
  EXPECT_FALSE(verdict.admitted);
  EXPECT_EQ(verdict.ticket, 0u);
  EXPECT_EQ(verdict.retry_after, seconds(1));
  EXPECT_EQ(pool->figures().early_denials, 1u);
}

TEST_F(FleetPoolTest, APartEndsWithItsCycle) {
  const PoolAnswer first = Ask("A");
  Round();
  now += seconds(10);
  const PoolAnswer late = Ask("A", {.ticket = first.ticket});
  EXPECT_FALSE(late.admitted);
  EXPECT_NE(late.ticket, 0u) << "it waits for a part of the new cycle";
  EXPECT_EQ(pool->figures().expired, 1u);
  Round();
  EXPECT_TRUE(Ask("A", {.ticket = late.ticket}).admitted);
  EXPECT_EQ(pool->cycle(), 2u);
}

TEST_F(FleetPoolTest, AnAbandonedRoundReportsTheSameAgain) {
  const PoolAnswer first = Ask("A");
  const FleetReport lost = pool->BeginRound(now);
  ASSERT_EQ(lost.clients.size(), 1u);
  pool->AbandonRound(lost);
  const FleetReport again = pool->BeginRound(now);
  ASSERT_EQ(again.clients.size(), 1u);
  EXPECT_EQ(again.clients[0].demand, 1u);
  EXPECT_EQ(again.clients[0].need, 1u);
  pool->AbandonRound(again);
  Round();
  EXPECT_TRUE(Ask("A", {.ticket = first.ticket}).admitted);
}

TEST_F(FleetPoolTest, GivesBackWhatItDoesNotNeed) {
  const PoolAnswer first = Ask("A");
  Round();
  EXPECT_EQ(shared.RoomFor("A"), 39u);
  (void)first;  // its client has left
  for (int i = 0; i < 20; ++i) {
    now += milliseconds(50);
    Round();
  }
  EXPECT_EQ(shared.RoomFor("A"), 40u);
}

TEST_F(FleetPoolTest, WhatNeverFitsIsRefusedWithoutARound) {
  const PoolAnswer verdict = Ask("A", {}, 41);
  EXPECT_EQ(verdict.reason, Reason::kNeverFits);
  EXPECT_EQ(verdict.retry_after, algorithm::kNever);
  EXPECT_EQ(Ask("").reason, Reason::kNoClient);
}

TEST_F(FleetPoolTest, AloneItHasItsPartAndCountsWhatItHasAdmittedBefore) {
  for (int i = 0; i < 5; ++i) Ask("A");
  Round();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Ask("A").admitted);
  pool->GoAlone(2, now);
  EXPECT_TRUE(pool->is_alone());
  int admitted = 0;
  for (int i = 0; i < 40; ++i) admitted += Ask("A").admitted;
  EXPECT_EQ(admitted, 15) << "20 less what it has admitted in this cycle";
  EXPECT_EQ(pool->figures().alone, 40u);
  Round();
  EXPECT_FALSE(pool->is_alone());
  // Six were taken (five spent, the last answered from what was there), and 15 are charged.
  EXPECT_EQ(shared.RoomFor("A"), 20u);
}

TEST_F(FleetPoolTest, TheCapacityOfAFleetCannotBeFound) {
  ShareOptions options{.pool = {.cycle = seconds(10)}};
  options.find_capacity.emplace();
  EXPECT_TRUE(absl::IsInvalidArgument(FleetPool::Make(options).status()));
}

}  // namespace fleet_pool_test
}  // namespace headgate::share
