// Clients that have had less than their part of what was admitted.
#include <chrono>
#include <string>

#include "headgate/algorithm/fair_share_rig.h"

namespace headgate::algorithm {
namespace fair_share_turns_test {

using std::chrono::milliseconds;
using std::chrono::seconds;

// In units of one admitted request: with four clients, a request of A counts 16/3, and A is behind
// if it is at most 8·16/3 ahead with the next one. Each admitted request of anybody takes 1 from
// that.
TEST(FairShareBehind, IsWhoHadLessThanItsPartOfWhatWasAdmitted) {
  FairSharePool pool = MakePool({.capacity = 4000, .cycle = seconds(10)});
  for (const auto* name : {"A", "B", "C", "D"}) Ask(pool, name, 1, At(seconds(0)));
  Ask(pool, "B", 4, At(seconds(0)));
  EXPECT_FALSE(pool.IsBehind("D", 1)) << "a new client may have one only";
  Ask(pool, "B", 1, At(seconds(0)));
  EXPECT_TRUE(pool.IsBehind("D", 1));
  EXPECT_FALSE(pool.IsBehind("new", 1));
  Ask(pool, "B", 95, At(seconds(0)));
  EXPECT_FALSE(pool.IsBehind("B", 1));
  EXPECT_TRUE(pool.IsBehind("A", 8));
  EXPECT_FALSE(pool.IsBehind("A", 9));
  Ask(pool, "A", 8, At(seconds(0)));
  EXPECT_TRUE(pool.IsBehind("A", 1)) << "8·13/3 + 16/3 is 40";
  Ask(pool, "A", 1, At(seconds(0)));
  EXPECT_FALSE(pool.IsBehind("A", 1));
  Ask(pool, "B", 2, At(seconds(0)));
  EXPECT_TRUE(pool.IsBehind("A", 1));
  EXPECT_FALSE(pool.IsBehind("A", 2));
}

// With two clients, a request counts 8/3.
TEST(FairShareBehind, DependsNeitherOnTheCapacityNorOnTheTime) {
  for (const uint64_t capacity : {1000u, 1'000'000u}) {
    FairSharePool pool = MakePool({.capacity = capacity, .cycle = seconds(10)});
    for (const auto* name : {"A", "B"}) Ask(pool, name, 1, At(seconds(0)));
    Ask(pool, "B", 100, At(milliseconds(1)));
    Ask(pool, "A", 11, At(milliseconds(1)));
    EXPECT_TRUE(pool.IsBehind("A", 1));
    Ask(pool, "A", 1, At(milliseconds(1)));
    EXPECT_FALSE(pool.IsBehind("A", 1));
    pool.Advance(At(milliseconds(10'500)));
    EXPECT_FALSE(pool.IsBehind("A", 1)) << "a new cycle changes nothing";
    EXPECT_FALSE(pool.IsBehind("B", 1));
    Ask(pool, "B", 2, At(milliseconds(10'500)));
    EXPECT_TRUE(pool.IsBehind("A", 1));
  }
}

// It is 16 requests ahead at most, and their last one took 1 from that. 23 others take it back
// to 7.
TEST(FairShareBehind, AStormIsSoonForgotten) {
  FairSharePool pool = MakePool({.capacity = 100'000, .cycle = seconds(10)});
  for (const auto* name : {"A", "B"}) Ask(pool, name, 1, At(seconds(0)));
  Ask(pool, "B", 10'000, At(seconds(0)));
  Ask(pool, "A", 23, At(seconds(0)));
  EXPECT_FALSE(pool.IsBehind("B", 1));
  Ask(pool, "A", 1, At(seconds(0)));
  EXPECT_TRUE(pool.IsBehind("B", 1));
}

// A request of A counts 16/9.
TEST(FairShareBehind, AClientOfWeightThreeHasThreeTimesAsMuch) {
  FairSharePool pool = MakePool({.capacity = 4000, .cycle = seconds(10)});
  pool.Decide({.client = "A", .weight = 3}, At(seconds(0)));
  Ask(pool, "B", 100, At(seconds(0)));
  for (int i = 0; i < 16; ++i) pool.Decide({.client = "A", .weight = 3}, At(seconds(0)));
  EXPECT_TRUE(pool.IsBehind("A", 1));
  pool.Decide({.client = "A", .weight = 3}, At(seconds(0)));
  EXPECT_FALSE(pool.IsBehind("A", 1));
  Ask(pool, "B", 1, At(seconds(0)));
  EXPECT_TRUE(pool.IsBehind("A", 1));
}

// No overflow: the largest costs, weights and numbers of clients.
TEST(FairShareBehind, HugeCostsAreBounded) {
  FairSharePool pool = MakePool({.capacity = kFairCapacityMax, .cycle = seconds(10)});
  pool.Decide({.client = "A", .weight = 1}, At(seconds(0)));
  for (int i = 0; i < 4000; ++i)
    pool.Decide({.client = "B" + std::to_string(i), .weight = kFairWeightMax}, At(seconds(0)));
  for (int i = 0; i < 1000; ++i) pool.CountSentAnyway("B1", kFairCapacityMax);
  EXPECT_TRUE(pool.IsBehind("A", 8));
  EXPECT_FALSE(pool.IsBehind("B1", 1));
  pool.CountSentAnyway("A", kFairCapacityMax);
  pool.CountSentAnyway("B1", 1);
  EXPECT_FALSE(pool.IsBehind("A", 1));
}

}  // namespace fair_share_turns_test
}  // namespace headgate::algorithm
