// Clients that ask for less than their shares are hardly refused, whatever the others do.
#include <gtest/gtest.h>

#include "tests/capacity/rig.h"
#include "tests/capacity/sharing.h"

namespace headgate::capacity {
namespace quiet_clients_test {

constexpr uint64_t kSeeds = 6;
constexpr size_t kQuiet = 3;

// Three quiet clients that ask for a tenth of the capacity together, and one that asks for twice
// the capacity. 10 workers of 50 ms: 200/s.
SharingOptions Storm(uint64_t seed, Service kind, base::Duration cycle) {
  return {.seed = seed,
          .upstream = {.service = milliseconds(50), .kind = kind},
          .cycle = cycle,
          .clients = {{"A", 7}, {"C", 7}, {"D", 7}, {"B", 400}}};
}

struct Refused {
  uint64_t sent = 0;
  uint64_t refused = 0;
  uint64_t in_flight = 0;
};

Refused QuietLoad(Sharing& sharing) {
  Refused sum;
  for (size_t client = 0; client < kQuiet; ++client) {
    const ClientLoad load = sharing.TakeLoad(client);
    sum.sent += load.sent;
    sum.refused += load.refused;
    sum.in_flight += load.refused_in_flight;
  }
  return sum;
}

// The storm's share is 85 % of a capacity that is twice the true one, so its requests are on pace,
// too, until the fall is noticed.
TEST(QuietClients, AreHardlyRefusedWhenTheCapacityHalves) {
  for (const Service kind : kServices) {
    for (const auto cycle : {seconds(1), seconds(10)}) {
      Refused sum;
      for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
        Sharing sharing(Storm(seed, kind, cycle));
        sharing.Run(seconds(30));
        QuietLoad(sharing);
        sharing.upstream().SetWorkers(5, sharing.now());
        sharing.Run(seconds(20));
        const Refused load = QuietLoad(sharing);
        EXPECT_LE(load.in_flight * 25, load.sent)
            << ToString(kind) << ", seed " << seed << ": for less than 0.8 s of 20";
        sum.sent += load.sent;
        sum.refused += load.refused;
        sum.in_flight += load.in_flight;
      }
      EXPECT_LE(sum.in_flight * 200, sum.sent) << ToString(kind) << ": 0.1 s of 20";
      EXPECT_LE(sum.refused * 50, sum.sent) << ToString(kind) << ": for any reason";
    }
  }
}

// Nothing is known but who sends how much.
TEST(QuietClients, AreHardlyRefusedBeforeACapacityIsFound) {
  for (const Service kind : kServices) {
    Refused sum;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      Sharing sharing(Storm(seed, kind, seconds(1)));
      sharing.Run(seconds(10));
      const Refused load = QuietLoad(sharing);
      sum.sent += load.sent;
      sum.in_flight += load.in_flight;
    }
    EXPECT_LE(sum.in_flight * 100, sum.sent) << ToString(kind) << ": 0.1 s of 10";
  }
}

// Clients that all ask for too much are not behind, so the limit holds for them.
TEST(QuietClients, DoNotMakeTheQueueLonger) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Sharing sharing({.seed = seed,
                     .upstream = {.service = milliseconds(50)},
                     .clients = {{"A", 100}, {"B", 100}, {"C", 100}, {"D", 100}}});
    sharing.Run(seconds(20));
    for (size_t client = 0; client < 4; ++client) sharing.TakeLoad(client);
    sharing.Run(seconds(20));
    for (size_t client = 0; client < 4; ++client) {
      const ClientLoad load = sharing.TakeLoad(client);
      EXPECT_LE(load.latency_sum / static_cast<int64_t>(load.answered), milliseconds(140))
          << "one and a half limits; three of them would be 270 ms";
    }
  }
}

}  // namespace quiet_clients_test
}  // namespace headgate::capacity
