#include "headgate/store/fair_victim.h"

#include <gtest/gtest.h>

namespace headgate::store {
namespace fair_victim_test {

const LimitClass kIncoming, kOther, kThird;

TEST(FairVictim, TheClassThatHoldsMostGivesWayWhateverItLoses) {
  FairVictim choice(kIncoming, 10);
  EXPECT_TRUE(choice.Offer(kIncoming, 10, 1));
  EXPECT_TRUE(choice.Offer(kOther, 11, 1'000'000));
  EXPECT_FALSE(choice.Offer(kIncoming, 10, 0));
  EXPECT_TRUE(choice.Offer(kThird, 12, 2'000'000));
  EXPECT_FALSE(choice.Offer(kOther, 11, 0));
}

TEST(FairVictim, WithinAClassTheBucketThatLosesLeastMakesWay) {
  FairVictim choice(kIncoming, 10);
  EXPECT_TRUE(choice.Offer(kOther, 20, 100));
  EXPECT_FALSE(choice.Offer(kOther, 20, 100));
  EXPECT_TRUE(choice.Offer(kOther, 20, 99));
  EXPECT_FALSE(choice.Offer(kOther, 20, 101));
}

TEST(FairVictim, AClassLosesNothingToOneThatHoldsAsMuch) {
  FairVictim choice(kIncoming, 10);
  EXPECT_FALSE(choice.Offer(kOther, 10, 0));
  EXPECT_FALSE(choice.Offer(kOther, 9, 0));
  EXPECT_TRUE(choice.Offer(kIncoming, 10, 5));
}

TEST(FairVictim, JudgesAClassByOneNumberThoughOthersChangeIt) {
  FairVictim choice(kIncoming, 10);
  EXPECT_TRUE(choice.Offer(kOther, 20, 100));
  EXPECT_FALSE(choice.Offer(kOther, 21, 200));
  EXPECT_TRUE(choice.Offer(kOther, 19, 50));
}

TEST(FairVictim, InItsOwnClassOnlyABucketThatLosesLessMakesWay) {
  FairVictim choice(kIncoming, 10, /*own_loss=*/100);
  EXPECT_FALSE(choice.Offer(kIncoming, 10, 100));
  EXPECT_TRUE(choice.Offer(kIncoming, 10, 99));
  EXPECT_TRUE(choice.Offer(kOther, 11, 1000));
}

}  // namespace fair_victim_test
}  // namespace headgate::store
