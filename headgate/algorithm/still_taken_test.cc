#include "headgate/algorithm/still_taken.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "headgate/algorithm/decide.h"
#include "headgate/algorithm/no_hits.h"
#include "headgate/base/random.h"

namespace headgate::algorithm {
namespace still_taken_test {

using namespace std::chrono_literals;

constexpr base::Instant kStart = base::Instant::FromNanos(1'790'000'040'000'000'000);  // a minute

Limit Made(const LimitSpec& spec) { return *Limit::Make(spec); }

TEST(StillTaken, ATokenBucketRefills) {
  const Limit limit = Made({.requests = 10, .period = 10s, .burst = 100});
  EXPECT_EQ(StillTaken(limit, 5, kStart, kStart), 5u);
  EXPECT_EQ(StillTaken(limit, 5, kStart, kStart + 1ns), 4u) << "a part counts as a whole";
  EXPECT_EQ(StillTaken(limit, 5, kStart, kStart + 2s), 3u);
  EXPECT_EQ(StillTaken(limit, 5, kStart, kStart + 5s), 0u);
  EXPECT_EQ(StillTaken(limit, 5, kStart, kStart + 24h * 365), 0u);
}

TEST(StillTaken, AWindowEnds) {
  for (const Algorithm algorithm : {Algorithm::kFixedWindow, Algorithm::kSlidingWindowCounter}) {
    const Limit limit = Made({.algorithm = algorithm, .requests = 10, .period = 60s});
    EXPECT_EQ(StillTaken(limit, 5, kStart, kStart + 60s - 1ns), 5u);
    EXPECT_EQ(StillTaken(limit, 5, kStart, kStart + 60s), 0u);
    EXPECT_EQ(StillTaken(limit, 5, kStart + 59s, kStart + 60s), 0u);
  }
  const Limit month =
      Made({.algorithm = Algorithm::kFixedWindow, .requests = 10, .align = Align::kCalendarMonth});
  EXPECT_EQ(StillTaken(month, 5, kStart, kStart + 24h), 5u);
  EXPECT_EQ(StillTaken(month, 5, kStart, kStart + 24h * 31), 0u);
}

TEST(StillTaken, IsNothingWhereItDependsOnOthers) {
  const Limit log =
      Made({.algorithm = Algorithm::kSlidingWindowLog, .requests = 10, .period = 60s});
  const Limit first_hit = Made({.algorithm = Algorithm::kFixedWindow,
                                .requests = 10,
                                .period = 60s,
                                .align = Align::kFirstHit});
  EXPECT_EQ(StillTaken(log, 5, kStart, kStart + 1s), 0u);
  EXPECT_EQ(StillTaken(first_hit, 5, kStart, kStart + 1s), 0u);
  EXPECT_EQ(StillTaken(Limit(), 5, kStart, kStart), 0u);
}

// Requests take an estimate, and give back later what they did not use. One bucket that had known
// the real costs from the beginning must have let all of them pass.
TEST(StillTaken, CorrectedEstimatesNeverLetMorePassThanOneBucket) {
  struct Use {
    base::Instant at;
    Cost real;
  };
  struct Open {
    size_t use;
    Cost estimate;
  };
  for (const Algorithm algorithm :
       {Algorithm::kTokenBucket, Algorithm::kFixedWindow, Algorithm::kSlidingWindowCounter}) {
    uint64_t given_back = 0;
    for (uint64_t seed = 1; seed <= 300; ++seed) {
      base::Random random(seed);
      const Limit limit =
          Made({.algorithm = algorithm, .requests = 1 + random.Below(40), .period = 10s});
      NoHits hits;
      BucketState state;
      base::Instant now = kStart;
      std::vector<Use> uses;
      std::deque<Open> open;
      for (int step = 0; step < 200; ++step) {
        now = now + base::Duration(static_cast<int64_t>(random.Below(3'000'000'000)));
        if (random.Below(2) == 0 && !open.empty()) {
          const Open settled = open.front();
          open.pop_front();
          Use& use = uses[settled.use];
          const Cost back = std::min(random.Below(settled.estimate + 1),
                                     StillTaken(limit, settled.estimate, use.at, now));
          ASSERT_TRUE(Refund(limit, state, hits, back, now).ok());
          use.real -= back;
          given_back += back;
        } else {
          const Cost estimate = 1 + random.Below(limit.capacity());
          if (!Decide(limit, state, hits, estimate, now).allowed) continue;
          open.push_back({uses.size(), estimate});
          uses.push_back({now, estimate});
        }
      }
      BucketState single;
      for (const Use& use : uses) {
        ASSERT_TRUE(Decide(limit, single, hits, use.real, use.at).allowed)
            << Name(algorithm) << ", seed " << seed;
      }
    }
    EXPECT_GT(given_back, 0u) << Name(algorithm);
  }
}

}  // namespace still_taken_test
}  // namespace headgate::algorithm
