// A request that gets a place allocates nothing for it, nor does one that waits.
#include <gtest/gtest.h>

#include <array>
#include <deque>

#include "headgate/proxy/upstreams_rig.h"
#include "headgate/testing/count_allocations.h"

namespace headgate::proxy {
namespace allocation_test {

uint64_t Allocations() {
  return headgate::testing::allocation_count.load(std::memory_order_relaxed);
}

struct PlaceAllocations : UpstreamsRig {
  void End(PlayedWaiter& waiter) {
    HEADGATE_CHECK(waiter.holds != nullptr);
    Played(*waiter.holds).places = 1;
    std::exchange(waiter.holds, nullptr)->Leave(waiter, Ended::kWell, now);
    Turn();
  }
  // They end in the order in which they get places, which is not that of their arrival.
  void EndAll(std::deque<PlayedWaiter>& batch, size_t count) {
    for (size_t ended = 0; ended < count;) {
      for (size_t i = 0; i < count; ++i) {
        if (batch[i].holds == nullptr) continue;
        End(batch[i]);
        ++ended;
      }
    }
  }
  // Requests of many clients, of which up to `at_once` have a place or wait.
  void Run(size_t at_once, size_t rounds) {
    for (size_t round = 0; round < rounds; ++round) {
      std::deque<PlayedWaiter>& batch = batches[round % batches.size()];
      for (size_t i = 0; i < at_once; ++i) {
        PlayedWaiter& waiter = batch[i];
        const auto taken = upstreams->Take(waiter, now);
        if (taken.place != nullptr) waiter.OnPlace(*taken.place, now);
      }
      EndAll(batch, at_once);
    }
  }

  // Each batch has clients of its own.
  std::array<std::deque<PlayedWaiter>, 50> batches;
};

TEST_F(PlaceAllocations, ThereAreNoneOnceEverythingHasBeenUsed) {
  options.connections_max = 4;
  Make(1);
  for (size_t number = 0; number < batches.size(); ++number) {
    for (size_t i = 0; i < 12; ++i) {
      PlayedWaiter& waiter = batches[number].emplace_back(100 * number + i / 3);
      waiter.on_place = [](Place& place) { Played(place).places = 0; };
    }
  }
  // Four connections.
  for (PlayedWaiter& waiter : batches[0]) (void)upstreams->Take(waiter, now);
  for (size_t i = 0; i < made.size(); ++i) Connected(i);
  ASSERT_EQ(made.size(), 4u);
  EndAll(batches[0], 12);
  Run(12, 50);
  const uint64_t before = Allocations();
  Run(3, 1000);
  EXPECT_EQ(Allocations() - before, 0u) << "requests that get a place at once";
  Run(12, 1000);
  EXPECT_EQ(Allocations() - before, 0u) << "requests that wait";
}

}  // namespace allocation_test
}  // namespace headgate::proxy
