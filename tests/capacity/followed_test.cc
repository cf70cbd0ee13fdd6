// The capacity follows an upstream that changes.
#include <gtest/gtest.h>

#include "tests/capacity/rig.h"

namespace headgate::capacity {
namespace followed_test {

constexpr uint64_t kSeeds = 5;

// The times in docs/internals/capacity.md, in seconds: until the capacity is within 15 % for good.
struct Times {
  double halved;
  double doubled;
};
Times TimesOf(Service kind, Pool pool) {
  if (kind == Service::kBimodal) return {25, 30};
  if (pool == Pool::kNone) return {6, 6};
  return {6, 15};
}

TEST(Followed, WhenItHalvesAndWhenItDoubles) {
  for (const Service kind : kServices) {
    for (const Pool pool : kPools) {
      for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
        Rig rig({.seed = seed, .upstream = {.kind = kind}, .pool = pool});
        rig.overload.Run(seconds(30));
        rig.overload.upstream().SetWorkers(5, rig.overload.now());
        const std::string what = ToString(kind) + ", " + ToString(pool);
        EXPECT_LE(rig.TimeToFollow(seconds(40), kBest / 2), TimesOf(kind, pool).halved)
            << what << ", seed " << seed;
        rig.overload.upstream().SetWorkers(10, rig.overload.now());
        EXPECT_LE(rig.TimeToFollow(seconds(40), kBest), TimesOf(kind, pool).doubled)
            << what << ", seed " << seed;
      }
    }
  }
}

// The same number of workers, each five times slower: the old base latency is far too small, and
// the limit must not follow it down.
TEST(Followed, WhenEachRequestTakesLonger) {
  for (const Service kind : {Service::kFixed, Service::kExponential}) {
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      Rig rig({.seed = seed, .upstream = {.kind = kind}});
      rig.overload.Run(seconds(30));
      rig.overload.upstream().SetService(milliseconds(50));
      EXPECT_LE(rig.TimeToFollow(seconds(40), kBest / 5), 20) << "seed " << seed;
      EXPECT_GE(rig.RunAndCount(seconds(30)).Goodput(), 0.9 * kBest / 5) << "seed " << seed;
      rig.overload.upstream().SetService(milliseconds(10));
      EXPECT_LE(rig.TimeToFollow(seconds(40), kBest), 20) << "seed " << seed;
      EXPECT_LE(rig.RunAndCount(seconds(60)).Percentile(50), milliseconds(25)) << "seed " << seed;
    }
  }
}

// A pool that admits what is known never makes the limit bind, so only requests above the pool can
// show that the upstream has grown.
TEST(Followed, FarBeyondThePool) {
  Rig rig({.per_second = 20 * kBest, .pool = Pool::kPaced});
  rig.overload.Run(seconds(30));
  rig.overload.upstream().SetWorkers(80, rig.overload.now());
  EXPECT_LE(rig.TimeToFollow(minutes(2), 8 * kBest), 40);
}

}  // namespace followed_test
}  // namespace headgate::capacity
