#include "headgate/share/fleet/fleet_count.h"

#include <gtest/gtest.h>

namespace headgate::share::fleet {
namespace fleet_count_test {

constexpr base::BootTime kStart{1'000'000'000'000};

TEST(FleetCount, OneThatStartsWithoutTheStoreIsUnknown) {
  const FleetCount count(0, [] { return 1; });
  EXPECT_EQ(count.count(kStart), 1u);
  EXPECT_FALSE(count.is_known());
  EXPECT_EQ(count.HandOver(kStart), 0u);
}

TEST(FleetCount, TheFlagComesFirst) {
  FleetCount count(4, [] { return 7; });
  count.TakeOver(9);
  EXPECT_EQ(count.count(kStart), 4u);
  EXPECT_TRUE(count.is_known());
  EXPECT_EQ(count.HandOver(kStart), 4u);
}

TEST(FleetCount, WhatTheStoreCountsReplacesWhatWasHandedOver) {
  uint32_t counted = 1;
  FleetCount count(0, [&] { return counted; });
  count.TakeOver(4);
  EXPECT_EQ(count.count(kStart), 4u);
  EXPECT_TRUE(count.is_known());
  EXPECT_EQ(count.HandOver(kStart), 4u);
  counted = 3;
  EXPECT_EQ(count.count(kStart), 3u);
}

// The others may have gone since the process before has counted them.
TEST(FleetCount, TheLastOneOfAFleetForgetsTheOthers) {
  FleetCount count(0, [] { return 1; });
  count.TakeOver(4);
  count.OnAnswer(kStart);
  count.OnAnswer(kStart + std::chrono::seconds(4));
  EXPECT_EQ(count.count(kStart + FleetCount::kTimeToCount - base::Duration(1)), 4u);
  EXPECT_EQ(count.count(kStart + FleetCount::kTimeToCount), 1u);
  EXPECT_TRUE(count.is_known());
}

}  // namespace fleet_count_test
}  // namespace headgate::share::fleet
