// A pool of which instances take parts: the sum of what they may spend is that of one pool.
#include <chrono>
#include <string>
#include <vector>

#include "headgate/algorithm/fair_share_rig.h"

namespace headgate::algorithm {
namespace fair_share_parts_test {

using base::Instant;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

FairSharePool FourShareForty(FairShareOptions options = {}) {
  options.capacity = 40;
  options.cycle = seconds(10);
  options.reservation = {1, 10};
  return MakePool(options);
}

void Demand(FairSharePool& pool, std::string_view client, Cost cost, Instant now) {
  EXPECT_TRUE(pool.AddDemand({.client = client, .cost = cost}, now));
}

TEST(FairShareParts, DemandIsCountedWithoutTakingAnything) {
  FairSharePool pool = FourShareForty();
  Demand(pool, "A", 2, At(seconds(100)));
  Demand(pool, "B", 15, At(seconds(100)));
  Demand(pool, "C", 10, At(seconds(100)));
  Demand(pool, "D", 10, At(seconds(100)));
  EXPECT_THAT(CapacitiesOf(pool), ElementsAre(10, 10, 10, 10));
  EXPECT_EQ(pool.RoomFor("B"), 10u);
  EXPECT_EQ(pool.TakePart("B", 7), 7u);
  EXPECT_EQ(pool.TakePart("B", 7), 3u);
  EXPECT_EQ(pool.TakePart("B", 7), 0u);
  EXPECT_EQ(pool.TakePart("nobody", 7), 0u);
  pool.Advance(At(seconds(110)));
  EXPECT_THAT(CapacitiesOf(pool), ElementsAre(5, 15, 10, 10));
}

TEST(FairShareParts, AReturnedPartCanBeTakenAgainInItsCycleOnly) {
  FairSharePool pool = FourShareForty();
  Demand(pool, "A", 40, At(seconds(100)));
  EXPECT_EQ(pool.TakePart("A", 40), 40u);
  pool.ReturnPart("A", 3, 1);
  EXPECT_EQ(pool.RoomFor("A"), 3u);
  pool.Advance(At(seconds(110)));
  EXPECT_EQ(pool.TakePart("A", 39), 39u);
  pool.ReturnPart("A", 3, 1);
  pool.ReturnPart("A", 3, 3);
  EXPECT_EQ(pool.RoomFor("A"), 1u) << "of another cycle";
  pool.ReturnPart("A", 100, 2);
  EXPECT_EQ(pool.RoomFor("A"), 40u) << "never more than was used";
}

TEST(FairShareParts, AfterAnEarlyEndAReturnIsNotUseOfTheClientAnyMore) {
  FairSharePool pool = FourShareForty({.reclaim = Reclaim::kAtOnce});
  for (const auto* name : {"A", "B", "C", "D"}) Demand(pool, name, 1, At(seconds(100)));
  Demand(pool, "B", 99, At(seconds(100)));
  pool.Advance(At(seconds(110)));
  EXPECT_THAT(CapacitiesOf(pool), ElementsAre(1, 37, 1, 1));
  EXPECT_EQ(pool.full_since(), 2u);
  EXPECT_EQ(pool.TakePart("B", 37), 37u);
  EXPECT_EQ(pool.TakePart("A", 1), 1u);
  Demand(pool, "A", 2, At(seconds(112)));
  pool.ReclaimFor("A", At(seconds(112)));
  EXPECT_EQ(pool.cycle().number, 3u) << "A wants its own back";
  EXPECT_EQ(pool.cycle().last_end, CycleEnd::kReclaim);
  EXPECT_EQ(pool.full_since(), 2u) << "the demands go on";
  EXPECT_EQ(pool.RoomFor("A"), 9u);
  pool.ReturnPart("A", 1, 2);
  EXPECT_EQ(pool.RoomFor("A"), 10u);
  // 38 of 40 were taken before, and A has gained 9.
  uint64_t taken = 0;
  for (const auto* name : {"A", "B", "C", "D"}) taken += pool.TakePart(name, 40);
  EXPECT_EQ(taken, 11u) << "what belongs to all is not increased";
}

TEST(FairShareParts, ADemandThatComesLateCountsForTheCycleInWhichItWasAsked) {
  FairSharePool early = FourShareForty(), late = FourShareForty();
  for (FairSharePool* pool : {&early, &late}) {
    for (const auto* name : {"A", "B", "C", "D"}) Demand(*pool, name, 1, At(seconds(100)));
    Demand(*pool, "A", 1, At(seconds(101)));
    Demand(*pool, "C", 9, At(seconds(101)));
    Demand(*pool, "D", 9, At(seconds(101)));
  }
  Demand(early, "B", 14, At(seconds(109)));
  early.Advance(At(seconds(110)));
  late.Advance(At(seconds(110)));
  EXPECT_EQ(late.full_before(), 1u);
  EXPECT_EQ(late.full_since(), 2u);
  const std::vector<FairShareRequest> requests = {{.client = "B", .cost = 14},
                                                  {.client = "unknown", .cost = 5}};
  late.AddLateDemand(requests);
  EXPECT_EQ(CapacitiesOf(late), CapacitiesOf(early));
  EXPECT_THAT(CapacitiesOf(late), ElementsAre(5, 15, 10, 10));
}

TEST(FairShareParts, WhatWasAdmittedWithoutThePoolIsUsed) {
  FairSharePool pool = FourShareForty();
  Demand(pool, "A", 1, At(seconds(100)));
  Demand(pool, "B", 1, At(seconds(100)));
  pool.ChargePart("A", 25);
  EXPECT_EQ(pool.RoomFor("A"), 0u) << "beyond its share";
  EXPECT_EQ(pool.RoomFor("B"), 15u) << "the pool has no more";
}

TEST(FairShareParts, OtherSettingsApplyFromTheNextFullCycle) {
  FairSharePool pool = FourShareForty();
  for (const auto* name : {"A", "B"}) Demand(pool, name, 30, At(seconds(100)));
  pool.SetOptions({.capacity = 60, .cycle = seconds(5), .reservation = {1, 10}});
  EXPECT_EQ(pool.capacity(), 40u);
  EXPECT_EQ(pool.options_next().capacity, 60u);
  pool.Advance(At(seconds(110)));
  EXPECT_THAT(CapacitiesOf(pool), ElementsAre(30, 30));
  EXPECT_EQ(pool.cycle().end, At(seconds(115)));
  EXPECT_EQ(pool.options_next().cycle, seconds(5));
}

TEST(FairShareParts, TooManyClientsAreRefused) {
  FairSharePool pool = FourShareForty({.clients_max = 1});
  Demand(pool, "A", 1, At(seconds(100)));
  EXPECT_FALSE(pool.AddDemand({.client = "B"}, At(seconds(100))));
}

}  // namespace fair_share_parts_test
}  // namespace headgate::algorithm
