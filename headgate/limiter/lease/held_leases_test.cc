// The life cycle of the leases that a node holds of one bucket.
#include "headgate/limiter/lease/held_leases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace headgate::limiter::lease {
namespace held_leases_test {

using base::BootTime;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

class HeldLeasesTest : public ::testing::Test {
 protected:
  static BootTime At(base::Duration at) { return BootTime{0} + at; }

  void Add(uint64_t number, base::Duration deadline, uint32_t granted) {
    uint64_t lost = 0;
    ASSERT_TRUE(held.Add({.number = number, .deadline = At(deadline), .granted = granted}, lost));
    ASSERT_EQ(lost, 0u);
  }

  std::vector<uint64_t> Numbers(bool closed) const {
    std::vector<uint64_t> numbers;
    for (const HeldLease& lease : held) {
      if (lease.closed == closed) numbers.push_back(lease.number);
    }
    return numbers;
  }

  // The numbers of the leases that a message reports as returned.
  std::vector<uint64_t> Returned() {
    std::array<store::LeaseReport, HeldLeases::kMax> reports;
    const uint32_t count = held.Report(reports);
    std::vector<uint64_t> numbers;
    for (uint32_t i = 0; i < count; ++i) {
      if (reports[i].returned) numbers.push_back(reports[i].number);
    }
    return numbers;
  }

  HeldLeases held;
};

TEST_F(HeldLeasesTest, CloseLeavesTheLeasesThatEndLater) {
  Add(1, 10ms, 5);
  Add(2, 20ms, 6);
  Add(3, 30ms, 7);
  held.Close(At(20ms));
  EXPECT_THAT(Numbers(/*closed=*/true), ElementsAre(1u));
  EXPECT_THAT(Numbers(/*closed=*/false), ElementsAre(2u, 3u));
  EXPECT_EQ(held.left(), 13u);
  EXPECT_TRUE(held.Spend(13));
}

TEST_F(HeldLeasesTest, CloseAlsoClosesWhatIsUsedUp) {
  Add(1, 10ms, 5);
  Add(2, 20ms, 6);
  EXPECT_TRUE(held.SpendFromFirst(5, At(1ms)));
  held.Close(At(2ms));
  EXPECT_THAT(Numbers(/*closed=*/true), ElementsAre(1u));
  EXPECT_FALSE(held.HasUnspentReturns());
  EXPECT_TRUE(held.HasReturns());
  EXPECT_TRUE(held.SpendFromFirst(6, At(3ms)));
}

// A report of an ended lease still gives back at the store, until its bucket is full again.
TEST_F(HeldLeasesTest, AnEndedLeaseIsReportedUntilItIsDropped) {
  Add(1, 10ms, 5);
  Add(2, 20ms, 6);
  held.Close(At(10ms) + 1ns);
  EXPECT_EQ(held.DropEnded(At(10ms) - 1ns), 0u);
  EXPECT_THAT(Returned(), ElementsAre(1u));
  EXPECT_EQ(held.OnTold(/*arrived=*/false), 0u);
  EXPECT_EQ(held.DropEnded(At(10ms)), 5u);
  EXPECT_THAT(Returned(), IsEmpty());
  EXPECT_EQ(held.left(), 6u);
}

// The rest of an ended lease may have refilled already, so nobody counts on it.
TEST_F(HeldLeasesTest, OnlyReturnsOfLeasesThatLiveAreCertainToComeBack) {
  Add(1, 10ms, 5);
  Add(2, 20ms, 6);
  held.Close(At(30ms));
  EXPECT_THAT(Returned(), ElementsAre(1u, 2u));
  EXPECT_EQ(held.Returned(At(9ms)), 11u);
  EXPECT_EQ(held.Returned(At(10ms)), 6u);
}

TEST_F(HeldLeasesTest, AReturnThatArrivedIsNotReportedAgain) {
  Add(1, 10ms, 5);
  held.Close(At(20ms));
  EXPECT_TRUE(held.HasUnspentReturns());
  EXPECT_THAT(Returned(), ElementsAre(1u));
  EXPECT_FALSE(held.HasReturns()) << "a message in flight reports it already";
  EXPECT_EQ(held.OnTold(/*arrived=*/true), 5u);
  EXPECT_TRUE(held.empty());
}

TEST_F(HeldLeasesTest, AReturnThatDidNotArriveIsReportedAgain) {
  Add(1, 10ms, 5);
  held.Close(At(20ms));
  EXPECT_THAT(Returned(), ElementsAre(1u));
  EXPECT_EQ(held.OnTold(/*arrived=*/false), 0u);
  EXPECT_TRUE(held.HasUnspentReturns());
  EXPECT_THAT(Returned(), ElementsAre(1u));
  EXPECT_EQ(held.OnTold(/*arrived=*/true), 5u);
  EXPECT_TRUE(held.empty());
}

TEST_F(HeldLeasesTest, AnOpenLeaseStaysWhenItsReportHasArrived) {
  Add(1, 10ms, 5);
  EXPECT_TRUE(held.SpendFromFirst(2, At(1ms)));
  EXPECT_THAT(Returned(), IsEmpty());
  EXPECT_EQ(held.OnTold(/*arrived=*/true), 0u);
  EXPECT_EQ(held.left(), 3u);
  EXPECT_EQ(held.GiveBack(2), 0u) << "the store knows that it is spent";
}

TEST_F(HeldLeasesTest, NothingIsGivenBackToALaterLease) {
  Add(1, 10ms, 5);
  EXPECT_TRUE(held.SpendFromFirst(4, At(1ms)));
  EXPECT_EQ(held.newest(), 1u);
  Add(2, 20ms, 5);
  EXPECT_TRUE(held.Spend(4));
  EXPECT_EQ(held.newest(), 2u);
  EXPECT_EQ(held.GiveBack(8, /*newest=*/1), 5u);
  EXPECT_EQ(held.GiveBack(8), 3u);
}

}  // namespace held_leases_test
}  // namespace headgate::limiter::lease
