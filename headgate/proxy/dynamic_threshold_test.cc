#include "headgate/proxy/dynamic_threshold.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace headgate::proxy {
namespace dynamic_threshold_test {

// Clients that all want as many places as they can get, and take them in turns.
struct Crowd {
  Crowd(uint64_t places, size_t clients) : free(places), own(clients) {}

  bool Take(size_t client) {
    if (!MayTakeOne(own[client], free)) return false;
    ++own[client];
    --free;
    return true;
  }
  void TakeAll() {
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (size_t i = 0; i < own.size(); ++i) goes_on = Take(i) || goes_on;
    }
  }

  uint64_t free;
  std::vector<uint64_t> own;
};

TEST(DynamicThreshold, ClientAloneGetsMostPlacesAndNotTheLast) {
  for (uint64_t places = 2; places <= 1000; ++places) {
    Crowd crowd(places, 1);
    crowd.TakeAll();
    // The client has kAlpha / (1 + kAlpha) of the places; of a few places, all but one.
    EXPECT_GE(crowd.own[0] + 1, places - (places + 8) / 9) << places;
    EXPECT_GE(crowd.free, 1u) << places;
  }
}

// The definition: with n greedy clients, own = kAlpha * free and n * own + free = places.
TEST(DynamicThreshold, GreedyClientsGetEqualParts) {
  for (const size_t clients : {1u, 2u, 3u, 8u, 16u}) {
    constexpr uint64_t kPlaces = 10'000;
    Crowd crowd(kPlaces, clients);
    crowd.TakeAll();
    const uint64_t expected = kPlaces * kAlpha / (1 + clients * kAlpha);
    for (const uint64_t own : crowd.own) {
      EXPECT_LE(own, expected + kAlpha);
      EXPECT_GE(own + kAlpha, expected);
    }
  }
}

TEST(DynamicThreshold, ThereIsRoomForANewcomer) {
  for (const uint64_t places : {2u, 3u, 10u, 128u, 256u}) {
    for (size_t greedy = 1; greedy < places; ++greedy) {
      Crowd crowd(places, greedy + 1);
      crowd.own.pop_back();
      crowd.TakeAll();
      crowd.own.push_back(0);
      EXPECT_TRUE(crowd.Take(greedy)) << places << " places, " << greedy << " greedy clients";
    }
  }
}

// A newcomer pushes nobody out. Its part grows as requests of the others end.
TEST(DynamicThreshold, NewcomerGetsAnEqualPartOnceTheRequestsOfOthersHaveEnded) {
  Crowd crowd(256, 2);
  while (crowd.Take(0)) {
  }
  for (int ended = 0; ended < 1000; ++ended) {
    const size_t holder = crowd.own[0] >= crowd.own[1] ? 0 : 1;
    --crowd.own[holder];
    ++crowd.free;
    crowd.TakeAll();
  }
  EXPECT_LE(std::max(crowd.own[0], crowd.own[1]) - std::min(crowd.own[0], crowd.own[1]), 2u);
}

TEST(DynamicThreshold, OnePlaceIsForAnybody) {
  EXPECT_TRUE(MayTakeOne(0, 1));
  EXPECT_FALSE(MayTakeOne(0, 0));
  EXPECT_FALSE(MayTakeOne(1, 1));
}

}  // namespace dynamic_threshold_test
}  // namespace headgate::proxy
