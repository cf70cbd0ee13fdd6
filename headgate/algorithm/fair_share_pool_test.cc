#include "headgate/algorithm/fair_share_pool.h"

#include <chrono>

#include "headgate/algorithm/fair_share_rig.h"

namespace headgate::algorithm {
namespace fair_share_pool_test {

using base::Instant;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(FairSharePool, GivesFourClientsWhatTheyAskedForCycleAfterCycle) {
  FairSharePool pool = MakePool({.capacity = 40, .cycle = seconds(10), .reservation = {1, 10}});
  const auto capacities = [&](Instant now) {
    std::vector<uint64_t> all;
    for (const auto* name : {"A", "B", "C", "D"}) all.push_back(CapacityOf(pool, name, now));
    return all;
  };
  for (const auto* name : {"A", "B", "C", "D"}) Ask(pool, name, 1, At(seconds(100)));
  EXPECT_THAT(capacities(At(seconds(100))), ElementsAre(10, 10, 10, 10));
  EXPECT_EQ(Ask(pool, "A", 1, At(seconds(101))), 1u);
  EXPECT_EQ(Ask(pool, "B", 14, At(seconds(101))), 9u);
  EXPECT_EQ(Ask(pool, "C", 9, At(seconds(101))), 9u);
  EXPECT_EQ(Ask(pool, "D", 9, At(seconds(101))), 9u);

  EXPECT_THAT(capacities(At(seconds(110))), ElementsAre(5, 15, 10, 10));
  EXPECT_EQ(Ask(pool, "A", 3, At(seconds(111))), 3u);
  EXPECT_EQ(Ask(pool, "B", 15, At(seconds(111))), 15u);
  EXPECT_EQ(Ask(pool, "C", 50, At(seconds(111))), 10u);
  EXPECT_EQ(Ask(pool, "D", 10, At(seconds(111))), 10u);

  EXPECT_THAT(capacities(At(seconds(120))), ElementsAre(3, 11, 16, 10));
  EXPECT_EQ(Ask(pool, "B", 15, At(seconds(121))), 11u);
  EXPECT_EQ(Ask(pool, "C", 50, At(seconds(121))), 16u);
  EXPECT_EQ(Ask(pool, "D", 5, At(seconds(121))), 5u);

  EXPECT_THAT(capacities(At(seconds(130))), ElementsAre(1, 12, 22, 5));
}

TEST(FairSharePool, AnswersADenialWithTheRestOfTheCycle) {
  FairSharePool pool = MakePool({.capacity = 2, .cycle = seconds(10)});
  EXPECT_EQ(Ask(pool, "A", 2, At(seconds(3))), 2u);
  const Decision denied = pool.Decide({.client = "A"}, At(seconds(5)));
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.limit, 2u);
  EXPECT_EQ(denied.remaining, 0u);
  EXPECT_EQ(denied.retry_after, seconds(8));
  EXPECT_EQ(denied.reset_after, seconds(8));
  EXPECT_TRUE(pool.Decide({.client = "A"}, At(seconds(13))).allowed);
  EXPECT_TRUE(pool.Decide({.client = "A", .cost = 3}, At(seconds(13))).never_fits());
}

TEST(FairSharePool, LetsANewClientInAtOnceWithoutRenewingAnybody) {
  FairSharePool pool = MakePool({.capacity = 30, .cycle = seconds(10)});
  EXPECT_EQ(Ask(pool, "A", 20, At(seconds(0))), 20u);
  EXPECT_EQ(Ask(pool, "B", 20, At(seconds(1))), 10u) << "its share is 15, but the pool has 10 left";
  EXPECT_EQ(Ask(pool, "A", 1, At(seconds(2))), 0u);
  EXPECT_EQ(Ask(pool, "C", 1, At(seconds(9))), 0u);
  EXPECT_EQ(CapacityOf(pool, "C", At(seconds(9))), 10u);
  EXPECT_EQ(pool.Decide({.client = "C", .cost = 0}, At(seconds(9))).reset_after, seconds(1))
      << "ends when it was due";
}

TEST(FairSharePool, CountsANewClientAsAnEvenShareAmongLastCyclesDemands) {
  FairSharePool pool = MakePool({.capacity = 40, .cycle = seconds(10)});
  Ask(pool, "A", 1, At(seconds(0)));
  Ask(pool, "B", 40, At(seconds(0)));
  // D is 10 for four clients. A asked for 1, so its surplus goes to B, which asked for 40.
  Ask(pool, "C", 1, At(seconds(10)));
  Ask(pool, "D", 1, At(seconds(10)));
  EXPECT_EQ(CapacityOf(pool, "A", At(seconds(10))), 1u);
  EXPECT_EQ(CapacityOf(pool, "B", At(seconds(10))), 19u);
  EXPECT_EQ(CapacityOf(pool, "C", At(seconds(10))), 10u);
  EXPECT_EQ(CapacityOf(pool, "D", At(seconds(10))), 10u);
}

TEST(FairSharePool, BeginsANewCycleForANewClientWhereItIsToldTo) {
  FairSharePool pool =
      MakePool({.capacity = 30, .cycle = seconds(10), .on_new_client = OnNewClient::kRestart});
  EXPECT_EQ(Ask(pool, "A", 30, At(seconds(0))), 30u);
  EXPECT_EQ(Ask(pool, "B", 30, At(seconds(4))), 15u);
  EXPECT_EQ(Ask(pool, "A", 30, At(seconds(4))), 15u) << "renewed";
  EXPECT_EQ(pool.Decide({.client = "A", .cost = 0}, At(seconds(4))).reset_after, seconds(10));
}

TEST(FairSharePool, RestartsAtMostOncePerMinimumCycle) {
  FairSharePool pool =
      MakePool({.capacity = 30, .cycle = seconds(10), .on_new_client = OnNewClient::kRestart});
  EXPECT_EQ(Ask(pool, "A", 30, At(seconds(0))), 30u);
  EXPECT_EQ(Ask(pool, "B", 30, At(milliseconds(999))), 0u) << "a tenth of the cycle has not passed";
  EXPECT_EQ(Ask(pool, "C", 30, At(milliseconds(1000))), 10u);
  EXPECT_EQ(Ask(pool, "D", 30, At(milliseconds(1999))), 7u)
      << "divided anew, with 20 left: 30/4, and the last whole one "
         "goes to A and B";
}

TEST(FairSharePool, ForgetsDemandsAfterACycleInWhichNobodyCame) {
  FairSharePool pool = MakePool({.capacity = 40, .cycle = seconds(10)});
  Ask(pool, "A", 1, At(seconds(0)));
  Ask(pool, "B", 40, At(seconds(0)));
  EXPECT_EQ(CapacityOf(pool, "A", At(seconds(35))), 20u);
  EXPECT_EQ(pool.Decide({.client = "A", .cost = 0}, At(seconds(35))).reset_after, seconds(5));
}

TEST(FairSharePool, RefusesAndCountsClientsBeyondItsBound) {
  FairSharePool pool = MakePool({.capacity = 40, .cycle = seconds(10), .clients_max = 2});
  EXPECT_EQ(Ask(pool, "A", 1, At(seconds(0))), 1u);
  EXPECT_EQ(Ask(pool, "B", 1, At(seconds(0))), 1u);
  EXPECT_EQ(Ask(pool, "C", 3, At(seconds(0))), 0u);
  EXPECT_EQ(pool.refused_clients(), 3u);
  EXPECT_EQ(pool.client_count(), 2u);
  EXPECT_EQ(CapacityOf(pool, "A", At(seconds(0))), 20u);
}

TEST(FairSharePool, MakesNobodyAClientForLooking) {
  FairSharePool pool = MakePool({.capacity = 40, .cycle = seconds(10)});
  Ask(pool, "A", 1, At(seconds(0)));
  const Decision look = pool.Decide({.client = "B", .cost = 0}, At(seconds(1)));
  EXPECT_TRUE(look.allowed);
  EXPECT_EQ(look.limit, 20u);
  EXPECT_EQ(pool.client_count(), 1u);
  EXPECT_EQ(CapacityOf(pool, "A", At(seconds(1))), 40u);
}

TEST(FairSharePool, CountsAnEarlierTimeAsTheLatestSeen) {
  FairSharePool pool = MakePool({.capacity = 2, .cycle = seconds(10)});
  EXPECT_EQ(Ask(pool, "A", 2, At(seconds(20))), 2u);
  EXPECT_EQ(Ask(pool, "A", 1, At(seconds(5))), 0u);
  EXPECT_EQ(pool.Decide({.client = "A"}, At(seconds(5))).retry_after, seconds(10));
}

TEST(FairSharePool, ARefusalElsewhereIsDemandThatTakesNothing) {
  FairSharePool pool = MakePool({.capacity = 40, .cycle = seconds(10)});
  Ask(pool, "A", 1, At(seconds(0)));
  for (int i = 0; i < 30; ++i) {
    const Decision decision = pool.Decide({.client = "B", .takes = false}, At(seconds(1)));
    EXPECT_TRUE(decision.allowed) << "what the pool would have answered";
    EXPECT_EQ(decision.remaining, 20u);
  }
  EXPECT_EQ(Ask(pool, "B", 21, At(seconds(2))), 20u) << "nothing was taken";
  EXPECT_FALSE(pool.Decide({.client = "B", .takes = false}, At(seconds(2))).allowed);
  EXPECT_EQ(pool.counts(), (FairShareCounts{.allowed = 21, .rejected = 1, .not_taken = 31}));
  // B asked for 52 of 40 and A for 1.
  EXPECT_EQ(CapacityOf(pool, "B", At(seconds(10))), 39u);
}

TEST(FairSharePool, ARequestThatIsSentAnywayTakesNothingFromTheOthers) {
  FairSharePool pool = MakePool({.capacity = 30, .cycle = seconds(10)});
  for (const auto* name : {"A", "B", "C"}) Ask(pool, name, 1, At(seconds(0)));
  EXPECT_EQ(Ask(pool, "A", 20, At(seconds(1))), 9u);
  for (int i = 0; i < 11; ++i) pool.CountSentAnyway("A", 1);
  EXPECT_EQ(pool.client(0).figures.used_now, 21u);
  EXPECT_EQ(pool.client(0).figures.counts,
            (FairShareCounts{.allowed = 10, .rejected = 11, .sent_anyway = 11}));
  EXPECT_EQ(Ask(pool, "B", 20, At(seconds(2))), 9u);
  EXPECT_EQ(Ask(pool, "C", 20, At(seconds(2))), 9u);
  EXPECT_EQ(pool.counts(), (FairShareCounts{.allowed = 30, .rejected = 33, .sent_anyway = 11}));
  pool.CountSentAnyway("unknown", 3);
  EXPECT_EQ(pool.client_count(), 3u);
  EXPECT_EQ(pool.counts().sent_anyway, 14u);
}

TEST(FairSharePool, ShowsWhatEachClientBorrowsAndLends) {
  FairSharePool pool = MakePool({.capacity = 40, .cycle = seconds(10), .reservation = {1, 10}});
  for (const auto* name : {"A", "B", "C", "D"}) Ask(pool, name, 1, At(seconds(0)));
  Ask(pool, "A", 2, At(seconds(1)));
  Ask(pool, "B", 14, At(seconds(1)));
  Ask(pool, "C", 49, At(seconds(1)));
  Ask(pool, "D", 9, At(seconds(1)));
  pool.Advance(At(seconds(10)));
  Ask(pool, "C", 20, At(seconds(11)));

  EXPECT_THAT(CapacitiesOf(pool), ElementsAre(3, 11, 16, 10));
  const ClientView a = pool.client(0), c = pool.client(2), d = pool.client(3);
  EXPECT_EQ(a.name, "A");
  EXPECT_EQ(a.figures.lent, 7u);
  EXPECT_EQ(a.figures.borrowed, 0u);
  EXPECT_EQ(a.figures.demand, 3u);
  EXPECT_EQ(c.figures.borrowed, 6u);
  EXPECT_EQ(c.figures.lent, 0u);
  EXPECT_EQ(c.figures.demand, 50u);
  EXPECT_EQ(c.figures.demand_now, 20u);
  EXPECT_EQ(c.figures.used_now, 16u);
  EXPECT_EQ(c.figures.counts, (FairShareCounts{.allowed = 26, .rejected = 44}));
  EXPECT_EQ(d.figures.borrowed + d.figures.lent, 0u);
}

TEST(FairSharePool, DoesNotCallRoundingALoan) {
  FairSharePool pool = MakePool({.capacity = 11, .cycle = seconds(10)});
  for (const auto* name : {"A", "B", "C"}) Ask(pool, name, 20, At(seconds(0)));
  pool.Advance(At(seconds(10)));
  EXPECT_THAT(CapacitiesOf(pool), ElementsAre(4, 4, 3));
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(pool.client(i).figures.borrowed + pool.client(i).figures.lent, 0u);
}

TEST(FairSharePool, SaysWhatIsWrongWithItsOptions) {
  const auto problem = [](const FairShareOptions& options) {
    return std::string(FairSharePool::Make(options).status().message());
  };
  EXPECT_THAT(problem({.cycle = seconds(1)}), HasSubstr("capacity is from 1 to 4294967295, not 0"));
  EXPECT_THAT(problem({.capacity = 1}), HasSubstr("cycle must be longer than 0"));
  EXPECT_THAT(problem({.capacity = 1, .cycle = seconds(1), .reservation = {3, 2}}),
              HasSubstr("not 3/2"));
  EXPECT_THAT(problem({.capacity = 1, .cycle = seconds(1), .minimum_cycle = seconds(2)}),
              HasSubstr("minimum_cycle"));
  EXPECT_THAT(problem({.capacity = 1, .cycle = seconds(1), .clients_max = 5000}),
              HasSubstr("4096 clients, not 5000"));
}

}  // namespace fair_share_pool_test
}  // namespace headgate::algorithm
