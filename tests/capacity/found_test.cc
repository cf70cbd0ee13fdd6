// The capacity of the benchmark upstream is found, kept, and used.
#include <gtest/gtest.h>

#include "tests/capacity/rig.h"

namespace headgate::capacity {
namespace found_test {

constexpr uint64_t kSeeds = 6;

struct Case {
  Service kind;
  Pool pool;
};

class Found : public ::testing::TestWithParam<Case> {
 protected:
  OverloadOptions Options(uint64_t seed, double per_second) const {
    return {.seed = seed,
            .upstream = {.kind = GetParam().kind},
            .per_second = per_second,
            .pool = GetParam().pool};
  }
};

TEST_P(Found, Within15PercentIn30SecondsAndKept) {
  for (const double overload : {2.0, 4.0}) {
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      Rig rig(Options(seed, overload * kBest));
      rig.overload.Run(seconds(30));
      const double worst = rig.RunAndCompare(seconds(30), kBest);
      EXPECT_LE(worst, 0.15) << "seed " << seed << ", overload " << overload;
    }
  }
}

TEST_P(Found, GoodputAtTwiceTheCapacityIsNearTheBest) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Rig rig(Options(seed, 2 * kBest));
    rig.overload.Run(seconds(10));
    Counts counts = rig.RunAndCount(seconds(40));
    // A pool that spreads its requests evenly leaves workers idle after each slow request. One that
    // does not lets the limit keep them busy.
    const bool is_hard = GetParam().kind == Service::kBimodal && GetParam().pool == Pool::kPaced;
    EXPECT_GE(counts.Goodput(), (is_hard ? 0.8 : 0.9) * kBest) << "seed " << seed;
    EXPECT_LE(counts.Percentile(50), milliseconds(25))
        << "seed " << seed << ": the service and 1.5 times as much in the queue";
  }
}

std::string NameOf(const ::testing::TestParamInfo<Case>& info) {
  std::string name = ToString(info.param.kind) + "_" + ToString(info.param.pool);
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const Service kind : kServices) {
    for (const Pool pool : kPools) cases.push_back({kind, pool});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Upstreams, Found, ::testing::ValuesIn(AllCases()), NameOf);

// The capacity is that of the upstream, whatever its size.
TEST(FoundSizes, FromOneWorkerToHundreds) {
  struct Size {
    uint32_t workers;
    base::Duration service;
    base::Duration found_in;
  };
  const Size sizes[] = {{1, milliseconds(2), seconds(30)},
                        {2, milliseconds(1), seconds(30)},
                        {40, milliseconds(100), seconds(30)},
                        {200, milliseconds(100), seconds(30)},
                        // 10 per second: a window lasts 10 s.
                        {1, milliseconds(100), seconds(60)}};
  for (const Size& size : sizes) {
    Rig rig({.upstream = {.workers = size.workers, .service = size.service},
             .per_second = 2 * size.workers / std::chrono::duration<double>(size.service).count()});
    const double best = rig.overload.upstream().Best();
    rig.overload.Run(size.found_in);
    EXPECT_LE(rig.RunAndCompare(seconds(30), best), 0.15) << "best " << best;
    EXPECT_GE(rig.RunAndCount(seconds(30)).Goodput(), 0.9 * best);
  }
}

TEST(FoundNot, WhileTheUpstreamHasTimeForEverybody) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Rig rig({.seed = seed, .upstream = {.kind = Service::kExponential}, .per_second = kBest / 2});
    uint32_t most = 0;
    rig.overload.Run(minutes(2), [&] { most = std::max(most, rig.limit()); });
    EXPECT_EQ(rig.ours.PerSecond(), std::nullopt) << "nothing says how much it can do";
    EXPECT_LE(most, 26u) << "the first limit, and what a burst may add";
  }
}

TEST(FoundNot, HalfLoadTeachesNothingNew) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    for (const Pool pool : kPools) {
      Rig rig({.seed = seed, .upstream = {.kind = Service::kExponential}, .pool = pool});
      rig.overload.Run(seconds(30));
      const auto known = rig.ours.PerSecond();
      const uint32_t limit = rig.ours.controller().limit();
      rig.overload.SetPerSecond(kBest / 2);
      rig.overload.Run(minutes(5));
      EXPECT_NEAR(*rig.ours.PerSecond(), *known, 0.05 * kBest) << "seed " << seed;
      EXPECT_LE(rig.limit(), std::max(limit, 30u)) << "seed " << seed;
    }
  }
}

TEST(FoundNot, IdleTimeTeachesNothing) {
  Rig rig({});
  rig.overload.Run(seconds(20));
  rig.overload.SetPerSecond(0);
  rig.overload.Run(seconds(1));
  const auto known = rig.ours.PerSecond();
  const uint32_t limit = rig.limit();
  // A few requests in an hour, and then a storm.
  rig.overload.SetPerSecond(0.01);
  rig.overload.Run(minutes(60));
  EXPECT_EQ(rig.ours.PerSecond(), known);
  EXPECT_EQ(rig.limit(), limit);
  rig.overload.SetPerSecond(2 * kBest);
  EXPECT_LE(rig.RunAndCompare(seconds(30), kBest), 0.15) << "known from the first request on";
}

}  // namespace found_test
}  // namespace headgate::capacity
