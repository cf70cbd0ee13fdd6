#include "headgate/share/in_flight.h"

#include <gtest/gtest.h>

#include <vector>

namespace headgate::share {
namespace in_flight_test {

using base::Instant;
using std::chrono::milliseconds;

constexpr Instant At(int ms) { return Instant::FromNanos(1'000'000'000) + milliseconds(ms); }

class InFlightTest : public ::testing::Test {
 protected:
  uint64_t Enter(std::string_view client, int at_ms = 0, uint32_t weight = 1) {
    return in_flight_.Enter({.client = client, .weight = weight}, At(at_ms));
  }
  bool HasRoom(std::string_view client, uint32_t limit, uint32_t weight = 1) {
    return in_flight_.OwnOf(client, weight, limit, limit).has_room;
  }
  InFlight in_flight_{base::HashSecret{}};
};

TEST_F(InFlightTest, TellsWhatARequestHasTakenWhenItLeaves) {
  Enter("ann");
  const uint64_t number = in_flight_.Enter(
      {.client = "bob", .weight = 3, .taken = 2, .cycle = 7, .is_above = true}, At(0));
  EXPECT_EQ(in_flight_.counted(), 2u);
  EXPECT_EQ(in_flight_.above(), 1u);
  const InFlight::Left left = in_flight_.Leave(number);
  EXPECT_EQ(left.request.client, "bob");
  EXPECT_EQ(left.request.taken, 2u);
  EXPECT_EQ(left.request.cycle, 7u);
  EXPECT_TRUE(left.counted);
  EXPECT_EQ(in_flight_.size(), 1u);
  EXPECT_EQ(in_flight_.above(), 0u);
}

TEST_F(InFlightTest, NumbersAreNotReused) {
  const uint64_t first = Enter("ann");
  in_flight_.Leave(first);
  EXPECT_NE(Enter("ann"), first);
  EXPECT_DEATH(in_flight_.Leave(first), "");
}

// Each of two clients has a part of 9 requests of 18.
TEST_F(InFlightTest, AClientHasRoomWithinItsPartHoweverManyTheOthersHave) {
  for (int i = 0; i < 30; ++i) Enter("ann");
  EXPECT_FALSE(HasRoom("ann", 18));
  for (int i = 0; i < 9; ++i) {
    EXPECT_TRUE(HasRoom("bob", 18)) << i;
    Enter("bob");
  }
  EXPECT_FALSE(HasRoom("bob", 18));
  EXPECT_EQ(in_flight_.OwnOf("bob", 1, 18, 18).requests, 9u);
}

// Ann's part of 18 requests is 12, and bob's is 6.
TEST_F(InFlightTest, PartsFollowTheWeights) {
  for (int i = 0; i < 11; ++i) Enter("ann", 0, 2);
  for (int i = 0; i < 5; ++i) Enter("bob");
  EXPECT_TRUE(HasRoom("ann", 18, 2));
  EXPECT_TRUE(HasRoom("bob", 18));
  Enter("ann", 0, 2);
  Enter("bob");
  EXPECT_FALSE(HasRoom("ann", 18, 2));
  EXPECT_FALSE(HasRoom("bob", 18));
}

TEST_F(InFlightTest, IfThereAreMoreClientsThanPlacesNobodyHasAPart) {
  Enter("ann");
  Enter("bob");
  EXPECT_TRUE(HasRoom("cid", 3));
  EXPECT_FALSE(HasRoom("cid", 2));
}

TEST_F(InFlightTest, WhileTheLimitIsLowForAMomentEachClientMayHaveOne) {
  for (int i = 0; i < 9; ++i) Enter("ann");
  EXPECT_TRUE(in_flight_.OwnOf("bob", 1, /*limit=*/1, /*limit_usual=*/18).has_room);
  Enter("bob");
  EXPECT_FALSE(in_flight_.OwnOf("bob", 1, /*limit=*/1, /*limit_usual=*/18).has_room);
}

TEST_F(InFlightTest, TheOldestAreDroppedFromTheCountAndStay) {
  std::vector<uint64_t> numbers;
  for (int i = 0; i < 4; ++i) numbers.push_back(Enter(i < 3 ? "ann" : "bob", i));
  in_flight_.Leave(numbers[1]);
  EXPECT_FALSE(in_flight_.DropFrom(At(0)));
  EXPECT_TRUE(in_flight_.DropFrom(At(3)));
  EXPECT_TRUE(in_flight_.DropFrom(At(3)));
  EXPECT_FALSE(in_flight_.DropFrom(At(3)));
  EXPECT_EQ(in_flight_.counted(), 1u);
  EXPECT_EQ(in_flight_.size(), 3u);
  EXPECT_EQ(in_flight_.OwnOf("ann", 1, 18, 18).requests, 0u);
  const InFlight::Left left = in_flight_.Leave(numbers[0]);
  EXPECT_FALSE(left.counted);
  EXPECT_EQ(left.request.client, "ann");
  EXPECT_TRUE(in_flight_.Leave(numbers[3]).counted);
  EXPECT_FALSE(in_flight_.DropFrom(base::kInstantMax));
}

}  // namespace in_flight_test
}  // namespace headgate::share
