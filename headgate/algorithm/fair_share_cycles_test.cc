// The cycles of a pool: their ends, clients that leave or want their own back, and a capacity that
// changes.
#include <chrono>
#include <string>

#include "headgate/algorithm/fair_share_rig.h"

namespace headgate::algorithm {
namespace fair_share_cycles_test {

using base::Instant;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

// Four clients share 40 (an even share is 10). A asked for 1 and B for 100 in the last cycle, C and
// D for 10. The second cycle begins at 10 s: A has 1, B has 19, C and D have 10.
FairSharePool PoolWithALoan(FairShareOptions options = {}) {
  options.capacity = 40;
  options.cycle = seconds(10);
  options.reservation = {1, 10};
  FairSharePool pool = MakePool(options);
  for (const auto* name : {"A", "B", "C", "D"}) Ask(pool, name, 1, At(seconds(0)));
  Ask(pool, "B", 99, At(seconds(0)));
  Ask(pool, "C", 9, At(seconds(0)));
  Ask(pool, "D", 9, At(seconds(0)));
  pool.Advance(At(seconds(10)));
  return pool;
}

// ---- Ends

TEST(FairShareCycles, TellWhyAndWhenTheyEnded) {
  FairSharePool pool = MakePool({.capacity = 40, .cycle = seconds(10)});
  Ask(pool, "A", 1, At(seconds(3)));
  EXPECT_EQ(pool.cycle().number, 1u);
  EXPECT_EQ(pool.cycle().start, At(seconds(3)));
  EXPECT_EQ(pool.cycle().end, At(seconds(13)));
  EXPECT_EQ(pool.cycle().last_length, seconds(0));
  pool.Advance(At(seconds(13)));
  EXPECT_EQ(pool.cycle().number, 2u);
  EXPECT_EQ(pool.cycle().start, At(seconds(13)));
  EXPECT_EQ(pool.cycle().last_end, CycleEnd::kDue);
  EXPECT_EQ(pool.cycle().last_length, seconds(10));
  pool.Advance(At(seconds(57)));
  EXPECT_EQ(pool.cycle().number, 6u);
  EXPECT_EQ(pool.cycle().start, At(seconds(53)));
  EXPECT_EQ(pool.cycle().last_length, seconds(10));
  EXPECT_THAT(pool.cycle().ends, ElementsAre(5, 0, 0, 0));
}

TEST(FairShareCycles, TellThatANewClientEndedOne) {
  FairSharePool pool =
      MakePool({.capacity = 40, .cycle = seconds(10), .on_new_client = OnNewClient::kRestart});
  Ask(pool, "A", 1, At(seconds(0)));
  Ask(pool, "B", 1, At(seconds(4)));
  EXPECT_EQ(pool.cycle().number, 2u);
  EXPECT_EQ(pool.cycle().last_end, CycleEnd::kNewClient);
  EXPECT_EQ(pool.cycle().last_length, seconds(4));
  EXPECT_EQ(pool.cycle().end, At(seconds(14)));
  EXPECT_THAT(pool.cycle().ends, ElementsAre(0, 1, 0, 0));
}

// ---- Leaving

TEST(FairShareLeaving, HappensAtTheEndOfTheCyclesThatWereAgreed) {
  FairSharePool pool = MakePool({.capacity = 40, .cycle = seconds(10), .leave_after_cycles = 2});
  for (const auto* name : {"A", "B"}) Ask(pool, name, 1, At(seconds(9)));
  Ask(pool, "B", 50, At(seconds(15)));
  Ask(pool, "B", 50, At(seconds(25)));
  EXPECT_EQ(pool.client_count(), 2u);
  EXPECT_EQ(CapacityOf(pool, "A", At(seconds(38))), 0u);
  // A asked for something in the cycle from 9 to 19 s, and for nothing in the next two.
  pool.Advance(At(seconds(39)));
  EXPECT_EQ(pool.client_count(), 1u);
  EXPECT_EQ(pool.clients_left(), 1u);
  EXPECT_EQ(pool.client(0).name, "B");
  EXPECT_EQ(Ask(pool, "B", 50, At(seconds(39))), 40u);
  EXPECT_EQ(Ask(pool, "A", 1, At(seconds(49))), 1u) << "it is a new client";
  EXPECT_THAT(CapacitiesOf(pool), ElementsAre(20, 20));
}

TEST(FairShareLeaving, AnEvenShareIsKeptUntilThen) {
  FairSharePool pool = MakePool({.capacity = 40, .cycle = seconds(10), .reservation = {1, 2}});
  for (const auto* name : {"A", "B"}) Ask(pool, name, 1, At(seconds(0)));
  for (int cycle = 0; cycle <= 10; ++cycle) {
    EXPECT_EQ(pool.client_count(), 2u) << "cycle " << cycle;
    Ask(pool, "B", 100, At(seconds(10 * cycle)));
    EXPECT_EQ(pool.client(1).figures.capacity, cycle == 0 ? 20u : 30u) << "A keeps half of its 20";
  }
  Ask(pool, "B", 100, At(seconds(110)));
  EXPECT_THAT(CapacitiesOf(pool), ElementsAre(40));
}

TEST(FairShareLeaving, ADeniedRequestStaysAndALookDoesNot) {
  FairSharePool pool = MakePool({.capacity = 1, .cycle = seconds(10), .leave_after_cycles = 1});
  for (const auto* name : {"A", "B", "C"}) Ask(pool, name, 1, At(seconds(0)));
  EXPECT_EQ(Ask(pool, "A", 1, At(seconds(10))), 1u);
  EXPECT_EQ(Ask(pool, "B", 1, At(seconds(10))), 0u);
  CapacityOf(pool, "C", At(seconds(10)));
  pool.Advance(At(seconds(20)));
  EXPECT_EQ(pool.client_count(), 2u);
  EXPECT_EQ(pool.client(1).name, "B");
}

TEST(FairShareLeaving, APauseCountsAsTheCyclesThatPassed) {
  FairSharePool pool = MakePool({.capacity = 40, .cycle = seconds(10), .leave_after_cycles = 3});
  for (const auto* name : {"A", "B"}) Ask(pool, name, 1, At(seconds(0)));
  pool.Advance(At(seconds(39)));
  EXPECT_EQ(pool.client_count(), 2u);
  pool.Advance(At(seconds(40)));
  EXPECT_EQ(pool.client_count(), 0u);
  EXPECT_EQ(pool.clients_left(), 2u);
  // The next request begins a first cycle.
  EXPECT_EQ(Ask(pool, "A", 50, At(seconds(47))), 40u);
  EXPECT_EQ(pool.cycle().start, At(seconds(47)));
}

TEST(FairShareLeaving, CanBeSwitchedOff) {
  FairSharePool pool = MakePool({.capacity = 40, .cycle = seconds(10), .leave_after_cycles = 0});
  Ask(pool, "A", 1, At(seconds(0)));
  pool.Advance(At(std::chrono::hours(24 * 365 * 50)));
  EXPECT_EQ(pool.client_count(), 1u);
  EXPECT_EQ(pool.clients_left(), 0u);
}

TEST(FairShareLeaving, MakesRoomForNewClientsAfterAFloodOfNames) {
  FairSharePool pool = MakePool({.capacity = 4000,
                                 .cycle = seconds(10),
                                 .leave_after_cycles = 2,
                                 .clients_max = 100,
                                 .is_paced = false});
  EXPECT_EQ(Ask(pool, "A", 4000, At(seconds(0))), 4000u);
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(Ask(pool, "name" + std::to_string(i), 1, At(seconds(1))), 0u);
  EXPECT_EQ(Ask(pool, "A", 1, At(seconds(1))), 0u) << "no allowance is renewed";
  EXPECT_EQ(pool.client_count(), 100u);
  EXPECT_EQ(pool.clients_replaced(), 1u) << "A, who was silent; the others ask at this moment";
  EXPECT_EQ(pool.refused_clients(), 901u);
  Ask(pool, "A", 1, At(seconds(12)));
  Ask(pool, "A", 1, At(seconds(22)));
  Ask(pool, "B", 1, At(seconds(32)));
  EXPECT_EQ(pool.client_count(), 2u);
}

// ---- Reclaiming

// B, C and D use what they have. 1 of 40 is left.
FairSharePool PoolWithAUsedLoan(FairShareOptions options, Instant now) {
  FairSharePool pool = PoolWithALoan(options);
  EXPECT_EQ(Ask(pool, "B", 30, now), 19u);
  EXPECT_EQ(Ask(pool, "C", 10, now), 10u);
  EXPECT_EQ(Ask(pool, "D", 10, now), 10u);
  return pool;
}

TEST(FairShareReclaim, IsNotNeededWhileThePoolHasRoom) {
  for (const Reclaim reclaim : {Reclaim::kNextCycle, Reclaim::kAtOnce}) {
    FairSharePool pool = PoolWithALoan({.reclaim = reclaim});
    EXPECT_THAT(CapacitiesOf(pool), ElementsAre(1, 19, 10, 10));
    EXPECT_EQ(Ask(pool, "B", 30, At(seconds(11))), 19u);
    EXPECT_EQ(Ask(pool, "A", 10, At(seconds(13))), 10u) << "its even share, not only its capacity";
    EXPECT_EQ(pool.cycle().number, 2u);
  }
}

TEST(FairShareReclaim, WaitsForTheEndOfTheCycleByDefault) {
  FairSharePool pool = PoolWithAUsedLoan({}, At(seconds(11)));
  EXPECT_EQ(Ask(pool, "A", 10, At(seconds(13))), 1u);
  EXPECT_EQ(pool.Decide({.client = "A"}, At(seconds(13))).retry_after, seconds(7));
  EXPECT_EQ(Ask(pool, "A", 10, At(seconds(20))), 10u);
}

TEST(FairShareReclaim, EndsTheCycleEarlyForTheOwnerAlone) {
  FairSharePool pool = PoolWithAUsedLoan({.reclaim = Reclaim::kAtOnce}, At(seconds(11)));
  EXPECT_EQ(Ask(pool, "A", 12, At(seconds(13))), 10u) << "its own, at once";
  EXPECT_THAT(CapacitiesOf(pool), ElementsAre(10, 10, 10, 10));
  EXPECT_EQ(pool.cycle().number, 3u);
  EXPECT_EQ(pool.cycle().last_end, CycleEnd::kReclaim);
  EXPECT_EQ(pool.cycle().last_length, seconds(3));
  EXPECT_EQ(pool.cycle().end, At(seconds(20))) << "when the last cycle was due";
  for (const auto* name : {"B", "C", "D", "new"})
    EXPECT_EQ(Ask(pool, name, 10, At(seconds(13))), 0u) << "nobody else's allowance is renewed";
  // A asked for 12 of its 10, B for 40, C and D for 20, in the whole of it. The new one counts too.
  pool.Advance(At(seconds(20)));
  EXPECT_THAT(CapacitiesOf(pool), ElementsAre(8, 8, 8, 8, 8));
  EXPECT_EQ(pool.client(1).figures.demand, 40u);
  EXPECT_THAT(pool.cycle().ends, ElementsAre(2, 0, 1, 0));
}

TEST(FairShareReclaim, WaitsForTheMinimumCycle) {
  FairSharePool pool = PoolWithAUsedLoan({.reclaim = Reclaim::kAtOnce, .minimum_cycle = seconds(2)},
                                         At(milliseconds(10'100)));
  EXPECT_EQ(Ask(pool, "A", 5, At(milliseconds(10'500))), 1u);
  const Decision denied = pool.Decide({.client = "A"}, At(milliseconds(10'500)));
  EXPECT_EQ(denied.retry_after, milliseconds(1500));
  EXPECT_EQ(denied.reset_after, milliseconds(1500));
  EXPECT_EQ(pool.cycle().end, At(seconds(12)));
  EXPECT_EQ(Ask(pool, "A", 1, At(milliseconds(11'999))), 0u);
  EXPECT_EQ(Ask(pool, "A", 20, At(seconds(12))), 9u);
  EXPECT_EQ(pool.cycle().number, 3u);
  EXPECT_EQ(pool.cycle().start, At(seconds(12)));
}

TEST(FairShareReclaim, TheEarlyEndComesWithoutAnotherRequest) {
  FairSharePool pool = PoolWithAUsedLoan({.reclaim = Reclaim::kAtOnce}, At(seconds(10)));
  Ask(pool, "A", 2, At(seconds(10)));
  pool.Advance(At(seconds(15)));
  EXPECT_EQ(pool.cycle().start, At(seconds(11)));
  EXPECT_THAT(CapacitiesOf(pool), ElementsAre(10, 10, 10, 10));
  pool.Advance(At(seconds(25)));
  EXPECT_EQ(pool.cycle().number, 4u);
  EXPECT_EQ(pool.cycle().last_length, seconds(9));
}

TEST(FairShareReclaim, IsForRequestsWithinTheEvenShareOnly) {
  FairSharePool pool = PoolWithALoan({.reclaim = Reclaim::kAtOnce});
  EXPECT_FALSE(pool.Decide({.client = "A", .cost = 11}, At(seconds(13))).allowed);
  EXPECT_EQ(Ask(pool, "B", 30, At(seconds(13))), 19u) << "B borrows, and has used its own";
  EXPECT_EQ(Ask(pool, "C", 11, At(seconds(13))), 10u) << "C has its own";
  EXPECT_EQ(Ask(pool, "D", 10, At(seconds(13))), 10u);
  EXPECT_EQ(pool.cycle().number, 2u);
  EXPECT_TRUE(pool.Decide({.client = "A", .cost = 10}, At(seconds(13))).allowed);
  EXPECT_EQ(pool.cycle().number, 3u);
}

// A used 6 before the others used the rest, so 4 are given back to it and not 9.
TEST(FairShareReclaim, GivesBackWhatTheOwnerHasNotUsed) {
  FairSharePool pool = PoolWithALoan({.reclaim = Reclaim::kAtOnce});
  EXPECT_EQ(Ask(pool, "A", 6, At(seconds(11))), 6u);
  EXPECT_EQ(Ask(pool, "B", 30, At(seconds(11))), 14u);
  EXPECT_EQ(Ask(pool, "C", 10, At(seconds(11))), 10u);
  EXPECT_EQ(Ask(pool, "D", 10, At(seconds(11))), 10u);
  EXPECT_EQ(Ask(pool, "A", 10, At(seconds(12))), 4u);
  EXPECT_EQ(pool.cycle().number, 3u);
  for (const auto* name : {"B", "C", "D", "new"})
    EXPECT_EQ(Ask(pool, name, 9, At(seconds(13))), 0u);
}

TEST(FairShareReclaim, APartOfAWholeOneIsNotALoan) {
  FairSharePool pool =
      MakePool({.capacity = 10, .cycle = seconds(10), .reclaim = Reclaim::kAtOnce});
  for (const auto* name : {"A", "B", "C"}) Ask(pool, name, 10, At(seconds(0)));
  EXPECT_EQ(Ask(pool, "B", 10, At(seconds(12))), 3u) << "it has 3 of 10/3";
  EXPECT_EQ(pool.cycle().number, 2u);
}

// ---- A capacity that changes

TEST(FairShareCapacity, ChangesForTheRestOfTheCycle) {
  FairSharePool pool = MakePool({.capacity = 40, .cycle = seconds(10)});
  for (const auto* name : {"A", "B"}) Ask(pool, name, 1, At(seconds(0)));
  pool.SetCapacity(100, At(seconds(4)));
  // 4 s of 40 and 6 s of 100.
  EXPECT_EQ(pool.capacity(), 76u);
  EXPECT_THAT(CapacitiesOf(pool), ElementsAre(38, 38));
  pool.SetCapacity(20, At(seconds(9)));
  EXPECT_EQ(pool.capacity(), 68u);
  EXPECT_EQ(Ask(pool, "A", 33, At(seconds(9))), 33u);
  EXPECT_EQ(Ask(pool, "B", 50, At(seconds(9))), 33u);
  pool.Advance(At(seconds(10)));
  EXPECT_EQ(pool.capacity(), 20u);
  EXPECT_THAT(CapacitiesOf(pool), ElementsAre(10, 10));
}

TEST(FairShareCapacity, AChangeMintsNothing) {
  FairSharePool pool = MakePool({.capacity = 100, .cycle = seconds(10), .is_paced = false});
  EXPECT_EQ(Ask(pool, "A", 100, At(seconds(0))), 100u);
  pool.SetCapacity(10, At(seconds(5)));
  EXPECT_EQ(pool.capacity(), 55u);
  pool.SetCapacity(100, At(seconds(5)));
  EXPECT_EQ(pool.capacity(), 100u);
  EXPECT_EQ(Ask(pool, "A", 1, At(seconds(5))), 0u);
  EXPECT_EQ(Ask(pool, "new", 1, At(seconds(5))), 0u);
}

TEST(FairShareCapacity, ACycleKeepsItsPartAfterAnEarlyEnd) {
  FairSharePool pool = PoolWithAUsedLoan({.reclaim = Reclaim::kAtOnce}, At(seconds(11)));
  pool.SetCapacity(20, At(seconds(15)));
  EXPECT_EQ(pool.capacity(), 30u);
  // A has 8 of 30 then. The 1 that it had before was taken away with the capacity.
  EXPECT_EQ(Ask(pool, "A", 20, At(seconds(16))), 7u);
  EXPECT_EQ(pool.cycle().last_end, CycleEnd::kReclaim);
  EXPECT_EQ(pool.capacity(), 30u);
  pool.Advance(At(seconds(20)));
  EXPECT_EQ(pool.capacity(), 20u);
}

TEST(FairShareCapacity, LowersWhatIsLeftAfterAnEarlyEnd) {
  FairSharePool pool = PoolWithAUsedLoan({.reclaim = Reclaim::kAtOnce}, At(seconds(11)));
  EXPECT_EQ(Ask(pool, "A", 2, At(seconds(13))), 2u);
  // 8 of the 9 that A got back are left. The change takes 10.
  pool.SetCapacity(20, At(seconds(15)));
  EXPECT_EQ(Ask(pool, "new", 20, At(seconds(15))), 0u);
  EXPECT_EQ(Ask(pool, "A", 20, At(seconds(15))), 0u);
}

TEST(FairShareCapacity, IsKeptWithinItsBounds) {
  FairSharePool pool = MakePool({.capacity = 40, .cycle = seconds(10)});
  pool.SetCapacity(0, At(seconds(0)));
  EXPECT_EQ(pool.capacity(), 1u) << "at once if there are no clients";
  Ask(pool, "A", 1, At(seconds(0)));
  pool.SetCapacity(uint64_t{1} << 40, At(seconds(0)));
  EXPECT_EQ(pool.capacity(), kFairCapacityMax);
  pool.SetCapacity(0, At(seconds(0)));
  EXPECT_EQ(pool.capacity(), 1u);
}

TEST(FairShareCapacity, ARequestMayFitIntoTheNextCycle) {
  FairSharePool pool = MakePool({.capacity = 4, .cycle = seconds(10)});
  EXPECT_TRUE(pool.Decide({.client = "A", .cost = 5}, At(seconds(1))).never_fits());
  pool.SetCapacity(5, At(seconds(2)));
  EXPECT_EQ(pool.capacity(), 4u);
  EXPECT_EQ(pool.Decide({.client = "A", .cost = 5}, At(seconds(2))).retry_after, seconds(9));
}

TEST(FairShareCapacity, BeginsAnewOnceItIsKnown) {
  FairSharePool pool =
      MakePool({.capacity = kFairCapacityMax, .cycle = seconds(10), .is_paced = false});
  for (const auto* name : {"A", "B", "C", "D"}) Ask(pool, name, 1, At(seconds(0)));
  Ask(pool, "A", 29, At(seconds(0)));
  Ask(pool, "B", 399, At(seconds(0)));
  pool.BeginAnew(400, At(seconds(4)));
  // In 10 s they would ask for 75, 1000, 2.5 and 2.5. The scaled demands are rounded down.
  EXPECT_THAT(CapacitiesOf(pool), ElementsAre(75, 321, 2, 2)) << "25, 98 and 98 are lent";
  EXPECT_EQ(pool.client(1).figures.demand, 1000u);
  EXPECT_EQ(pool.cycle().last_end, CycleEnd::kCapacity);
  EXPECT_EQ(pool.cycle().last_length, seconds(4));
  EXPECT_EQ(pool.cycle().end, At(seconds(14)));
  EXPECT_EQ(Ask(pool, "B", 500, At(seconds(4))), 321u) << "earlier use is forgotten";
}

TEST(FairShareCapacity, AShortTimeIsScaledTenfoldAtMost) {
  FairSharePool pool = MakePool({.capacity = kFairCapacityMax, .cycle = seconds(10)});
  for (const auto* name : {"A", "B"}) Ask(pool, name, 1, At(seconds(0)));
  pool.BeginAnew(40, At(milliseconds(1)));
  EXPECT_EQ(pool.client(0).figures.demand, 10u);
}

// ---- Pace

TEST(FairSharePace, BelongsToTheTimeThatHasPassed) {
  FairSharePool pool = PoolWithALoan();  // A has 1 of an even share of 10, B has 19
  EXPECT_TRUE(pool.IsOnPace("B", 1, At(seconds(10))));
  EXPECT_FALSE(pool.IsOnPace("B", 2, At(seconds(10))));
  EXPECT_EQ(Ask(pool, "B", 5, At(seconds(12))), 5u);
  // In 2.1 s of 10, 19 become 3.99; in 2.7 s 5.13.
  EXPECT_FALSE(pool.IsOnPace("B", 1, At(milliseconds(12'100))));
  EXPECT_TRUE(pool.IsOnPace("B", 1, At(milliseconds(12'700))));
  EXPECT_TRUE(pool.IsOnPace("A", 1, At(seconds(12))));
  EXPECT_TRUE(pool.IsOnPace("A", 8, At(seconds(19)))) << "of its even share";
  EXPECT_FALSE(pool.IsOnPace("A", 11, At(seconds(19))));
  EXPECT_FALSE(pool.IsOnPace("new", 1, At(seconds(19))));
}

}  // namespace fair_share_cycles_test
}  // namespace headgate::algorithm
