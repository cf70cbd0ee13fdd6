#include "headgate/algorithm/fair_share_pool.h"

#include <chrono>
#include <random>

namespace headgate::algorithm {
namespace {

using base::Duration;
using base::Instant;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Instant At(Duration d) { return Instant::FromNanos(0) + d; }

FairSharePool MakePool(const FairShareOptions& options) { return *FairSharePool::Make(options); }

// Sends `count` requests of one client; returns how many were allowed.
uint64_t Ask(FairSharePool& pool, std::string_view client, int count, Instant now) {
  uint64_t allowed = 0;
  for (int i = 0; i < count; ++i) allowed += pool.Decide({.client = client}, now).allowed;
  return allowed;
}

uint64_t CapacityOf(FairSharePool& pool, std::string_view client, Instant now) {
  return pool.Decide({.client = client, .cost = 0}, now).limit;
}

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

TEST(FairSharePool, AdmitsAtMostItsCapacityInEveryCycle) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    const uint64_t capacity = 1 + random() % 60;
    FairSharePool pool = MakePool({.capacity = capacity,
                                   .cycle = seconds(10),
                                   .reservation = {static_cast<uint32_t>(random() % 11), 10},
                                   .clients_max = 12});
    pool.Decide({.client = "a"}, At(seconds(0)));  // the first cycle begins with the first request
    Duration t = seconds(0);
    uint64_t admitted = 1;
    int64_t cycle = 0;
    for (uint64_t step = 0; step < 400; ++step) {
      t += Duration(static_cast<int64_t>(random() % 400'000'000));
      if (t / seconds(10) != cycle) {
        cycle = t / seconds(10);
        admitted = 0;
      }
      const uint64_t who = random() % (1 + step / 20);
      const std::string client(1, static_cast<char>('a' + who));
      const Cost cost = random() % 4;
      const auto weight = static_cast<uint32_t>(1 + who % 3);
      if (pool.Decide({.client = client, .cost = cost, .weight = weight}, At(t)).allowed)
        admitted += cost;
      ASSERT_LE(admitted, capacity) << "seed " << seed;
    }
  }
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

}  // namespace
}  // namespace headgate::algorithm
