// Upstreams that pause, fail, or refuse requests by themselves.
#include <gtest/gtest.h>

#include "tests/capacity/rig.h"

namespace headgate::capacity {
namespace odd_upstreams_test {

constexpr uint64_t kSeeds = 5;

TEST(OddUpstreams, APauseChangesNothing) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    for (const Pool pool : kPools) {
      Rig rig({.seed = seed, .upstream = {.pause_every = seconds(7)}, .pool = pool});
      rig.overload.Run(seconds(30));
      EXPECT_LE(rig.RunAndCompare(minutes(1), kBest), 0.15) << ToString(pool) << ", seed " << seed;
      EXPECT_GE(rig.RunAndCount(seconds(28)).Goodput(), 0.9 * rig.overload.upstream().Best());
      EXPECT_GE(rig.limit(), 11u) << "more than there are workers";
    }
  }
}

TEST(OddUpstreams, APauseAtHalfLoadIsNoOverload) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Rig rig({.seed = seed, .upstream = {.pause_every = seconds(7)}, .per_second = kBest / 2});
    rig.overload.Run(minutes(2));
    EXPECT_EQ(rig.ours.PerSecond(), std::nullopt) << "seed " << seed;
  }
}

TEST(OddUpstreams, FastErrorsAreNoCompletions) {
  for (const uint32_t percent : {30u, 50u, 100u}) {
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      Rig rig({.seed = seed, .per_second = 4 * kBest});
      rig.overload.Run(seconds(30));
      rig.overload.upstream().SetFailing(percent);
      EXPECT_LE(rig.RunAndCompare(seconds(30), kBest), 0.15) << percent << " %, seed " << seed;
      if (percent < 100) {
        EXPECT_GE(rig.RunAndCount(seconds(30)).Goodput(), 0.85 * kBest)
            << percent << " %, seed " << seed << ": the rest is answered as before";
      }
      rig.overload.upstream().SetFailing(0);
      rig.overload.Run(seconds(5));
      EXPECT_LE(rig.RunAndCompare(seconds(30), kBest), 0.15) << percent << " %, seed " << seed;
      EXPECT_GE(rig.RunAndCount(seconds(30)).Goodput(), 0.9 * kBest);
    }
  }
}

// It answers 503 itself beyond five waiting requests. The limit comes below that.
TEST(OddUpstreams, AnUpstreamThatShedsLoadHasLittleToShed) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Rig rig({.seed = seed, .upstream = {.queue_max = 5}});
    rig.overload.Run(seconds(30));
    EXPECT_LE(rig.RunAndCompare(seconds(10), kBest), 0.15) << "seed " << seed;
    rig.overload.upstream().SetWorkers(5, rig.overload.now());
    EXPECT_LE(rig.TimeToFollow(seconds(40), kBest / 2), 20) << "seed " << seed;
    const Counts counts = rig.RunAndCount(minutes(2));
    EXPECT_LE(counts.failed * 20, counts.sent) << "seed " << seed;
    EXPECT_GE(counts.Goodput(), 0.9 * kBest / 2) << "seed " << seed;
  }
}

}  // namespace odd_upstreams_test
}  // namespace headgate::capacity
