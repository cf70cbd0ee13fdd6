// Buckets in memory that have had several limits: what is remembered of the earlier limits across
// sweeps, evictions, groups and snapshots. algorithm::Change defines the rule itself.
#include <gtest/gtest.h>

#include <array>
#include <boost/crc.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "headgate/base/random.h"
#include "headgate/store/memory_rig.h"

namespace headgate::store {
namespace limit_change_test {

using algorithm::Algorithm;
using algorithm::Decision;
using algorithm::Limit;
using algorithm::LimitSpec;
using base::Instant;
using namespace std::chrono_literals;

constexpr LimitSpec kHundred{.requests = 100, .period = 60s};
constexpr LimitSpec kTen{.requests = 10, .period = 60s};

// 85 of 100 are used at kStart, then the limit is cut to 10, and one request follows a second
// later. The bucket is full from 7 s on, but is not fresh until 51 s.
struct CutBucket : MemoryRig {
  explicit CutBucket(uint64_t max_buckets = 1000) : MemoryRig(max_buckets) {
    EXPECT_TRUE(Ask(1, hundred, kStart, 85).allowed);
    EXPECT_EQ(Ask(1, ten, kStart, 1).remaining, 9u);
  }
  uint64_t RemainingOnceBack(Instant now) { return Peek(1, back, now).remaining; }

  const LimitHandle hundred = Make(kHundred);
  const LimitHandle ten = Make(kTen);
  const LimitHandle back = Make(kHundred, 1);
};

TEST(LimitChange, ABucketThatIsFullAgainIsRememberedForTheLimitItHadBefore) {
  for (const auto& [back_at, remaining] : {std::pair{50s, 10u}, std::pair{51s, 100u}}) {
    CutBucket test;
    test.store.Sweep(kStart + back_at);
    EXPECT_EQ(test.store.stats().buckets, back_at < 51s ? 1u : 0u);
    EXPECT_EQ(test.RemainingOnceBack(kStart + back_at), remaining);
  }
}

// The requests that are left after a chain of limits, each of which lasts for a moment. `used`: of
// the first one.
uint64_t LeftAfter(const std::vector<LimitSpec>& chain, uint64_t used, bool asks_between) {
  MemoryRig rig;
  std::vector<LimitHandle> limits;
  for (const LimitSpec& spec : chain) limits.push_back(rig.Make(spec, uint32_t(limits.size())));
  std::vector<LimitChange> history;
  EXPECT_TRUE(rig.Ask(1, limits[0], kStart, used).allowed);
  for (size_t i = 1; i < limits.size(); ++i) {
    history.push_back({.before = limits[i - 1].get(), .at = kStart + std::chrono::seconds(i)});
    const bool last = i + 1 == limits.size();
    if (asks_between || last) {
      const Decision decision = rig.Ask(1, limits[i], kStart + std::chrono::seconds(i) + 1ms, 0,
                                        Operation::kTake, history);
      if (last) return decision.remaining;
    }
  }
  return 0;
}

TEST(LimitChange, AChainOfKindsMintsNothing) {
  using enum Algorithm;
  const LimitSpec bucket{.requests = 1000, .period = 24h};
  for (const Algorithm kind :
       {kTokenBucket, kFixedWindow, kSlidingWindowCounter, kSlidingWindowLog, kLeakyBucketQueue}) {
    for (const bool asks_between : {true, false}) {
      SCOPED_TRACE(absl::StrCat(static_cast<int>(kind), asks_between ? " asked between" : ""));
      const auto limit = [&](uint64_t requests) {
        return LimitSpec{.algorithm = kind, .requests = requests, .period = 24h};
      };
      const LimitSpec brief{.algorithm = kind, .requests = 600, .period = 1h};
      // 600 are left at first. A token may come back meanwhile.
      for (const auto& chain : std::vector<std::vector<LimitSpec>>{
               {bucket, limit(600), bucket},
               {limit(1000), bucket, limit(1000)},
               {limit(1000), LimitSpec{.requests = 600, .period = 24h}, limit(1000)},
               {limit(1000), brief, limit(1000)}}) {
        EXPECT_LE(LeftAfter(chain, 400, asks_between), 601u) << chain.size();
      }
      // A queue lets nothing through faster than its rate, however many may wait.
      if (kind == kLeakyBucketQueue) continue;
      EXPECT_LE(LeftAfter({bucket, limit(600), limit(1000)}, 400, asks_between), 601u);
      EXPECT_LE(LeftAfter({bucket, limit(600), limit(700), limit(1000)}, 400, asks_between), 601u);
      EXPECT_LE(LeftAfter({bucket, limit(700), limit(1000)}, 400, asks_between), 601u);
    }
  }
}

// Instances that have taken up different versions of a rule ask in turn.
TEST(LimitChange, SeveralVersionsAtOnceAdmitNoMoreThanTheLargest) {
  using enum Algorithm;
  constexpr std::array kKinds{kTokenBucket, kFixedWindow, kSlidingWindowCounter, kSlidingWindowLog};
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    base::Random random(seed);
    MemoryRig rig;
    std::vector<LimitHandle> versions;
    std::vector<std::vector<LimitChange>> histories;
    uint64_t most = 0;
    for (uint32_t i = 0; i < 3; ++i) {
      const LimitSpec spec{.algorithm = kKinds[random.Below(kKinds.size())],
                           .requests = 200 + random.Below(800),
                           .period = random.Below(2) == 0 ? 24h : 12h};
      versions.push_back(rig.Make(spec, i));
      histories.push_back(i == 0 ? std::vector<LimitChange>() : histories.back());
      if (i > 0)
        histories.back().push_back({.before = versions[i - 1].get(), .at = kStart + i * 1s});
      most = std::max(most, spec.requests);
    }
    uint64_t admitted = 0;
    constexpr int kRequests = 4000;
    for (int k = 0; k < kRequests; ++k) {
      const size_t version = random.Below(3);
      const Instant now = kStart + 3s + k * 1ms;
      admitted +=
          rig.Ask(1, versions[version], now, 1, Operation::kTake, histories[version]).allowed;
    }
    // In 7 s a bucket of 1000 in 12 hours gains less than one.
    EXPECT_LE(admitted, most + 1) << seed;
  }
}

TEST(LimitChange, IsForgottenByARequestThatFindsItAsIfNeverUsed) {
  CutBucket test;
  EXPECT_EQ(test.Peek(1, test.ten, kStart + 50s).remaining, 10u);
  EXPECT_EQ(test.store.stats().buckets, 1u);
  EXPECT_EQ(test.Peek(1, test.ten, kStart + 51s).remaining, 10u);
  EXPECT_EQ(test.store.stats().buckets, 0u);
}

TEST(LimitChange, ARequestUnderTheLimitThatHoldsKeepsWhatIsRemembered) {
  CutBucket test;
  EXPECT_TRUE(test.Ask(1, test.ten, kStart + 20s, 2).allowed);
  EXPECT_EQ(test.RemainingOnceBack(kStart + 50s), 10u);
}

TEST(LimitChange, AResetForgetsTheEarlierLimitsToo) {
  CutBucket test;
  TakeRequest reset = test.Request(1, test.ten, 0);
  reset.operation = Operation::kReset;
  Decision decision;
  test.store.Take({&reset, 1}, {&decision, 1}, kStart);
  EXPECT_EQ(test.RemainingOnceBack(kStart), 100u);
}

TEST(LimitChange, ARememberedBucketLosesMoreThanOneThatIsFullSooner) {
  CutBucket test(/*max_buckets=*/2);
  const LimitHandle brief = test.Make({.requests = 1, .period = 10s});
  test.Ask(2, brief, kStart + 8s, 1);
  test.Ask(3, brief, kStart + 9s, 1);
  EXPECT_EQ(test.store.stats().evictions, 1u);
  EXPECT_FALSE(test.Ask(3, brief, kStart + 9s, 1).allowed);
  EXPECT_EQ(test.RemainingOnceBack(kStart + 9s), 10u);
}

TEST(LimitChange, AGroupThatIsDeniedLeavesWhatIsRemembered) {
  CutBucket test;
  const LimitHandle none = test.Make({.requests = 1, .period = 1s});
  std::array requests{test.Request(1, test.back, 1), test.Request(2, none, 2)};
  requests[1].joined = Joined::kSameRule;
  std::array<Decision, 2> decisions;
  test.store.Take(requests, decisions, kStart + 1s);
  EXPECT_FALSE(decisions[1].allowed);
  test.store.Sweep(kStart + 50s);
  EXPECT_EQ(test.RemainingOnceBack(kStart + 50s), 10u);
}

// The hits of a log have no copy from which they could be restored.
TEST(LimitChange, AGroupThatIsDeniedLeavesNoLogBehindWhoseHitsAreGone) {
  MemoryRig test;
  const LimitHandle log =
      test.Make({.algorithm = Algorithm::kSlidingWindowLog, .requests = 10, .period = 60s});
  const LimitHandle ten = test.Make(kTen);
  const LimitHandle one = test.Make({.requests = 1, .period = 60s});
  test.Ask(1, log, kStart, 4);
  test.Ask(2, one, kStart, 1);
  std::array requests{test.Request(1, ten, 1), test.Request(2, one, 1)};
  requests[1].joined = Joined::kSameRule;
  std::array<Decision, 2> decisions;
  test.store.Take(requests, decisions, kStart);
  EXPECT_FALSE(decisions[1].allowed);
  EXPECT_EQ(test.store.stats().hit_blocks, 0u);
  EXPECT_EQ(test.Peek(1, ten, kStart).remaining, 6u);
  // Another log has hits of its own.
  test.Ask(3, log, kStart, 3);
  EXPECT_EQ(test.Peek(1, log, kStart).remaining, 6u);
  EXPECT_EQ(test.Peek(3, log, kStart).remaining, 7u);
}

TEST(LimitChange, ASlotThatIsUsedAgainRemembersNothingOfTheBucketBefore) {
  CutBucket test;
  test.store.Sweep(kStart + 60s);
  for (uint64_t key = 2; key < 1000; ++key) test.Ask(key, test.ten, kStart + 60s, 1);
  // A second under a limit of 60 per minute returns what each bucket has used.
  test.store.Sweep(kStart + 66s);
  EXPECT_EQ(test.store.stats().buckets, 0u);
}

TEST(LimitChange, SurvivesASnapshot) {
  CutBucket before;
  const std::string bytes = before.store.Snapshot(kStart + 20s);
  for (const auto& [back_at, remaining] : {std::pair{50s, 10u}, std::pair{51s, 100u}}) {
    MemoryRig after;
    ASSERT_TRUE(after.store.Restore(bytes, kStart + 20s).ok());
    EXPECT_EQ(after.store.stats().buckets, 1u);
    EXPECT_EQ(after.Peek(1, after.Make(kHundred, 1), kStart + back_at).remaining, remaining);
  }
}

TEST(LimitChange, ASnapshotKeepsThatARaiseAddsNothing) {
  MemoryRig before, after;
  const LimitSpec day{.algorithm = Algorithm::kFixedWindow, .requests = 600, .period = 24h};
  before.Ask(1, before.Make({.requests = 1000, .period = 24h}), kStart, 400);
  before.Ask(1, before.Make(day, 1), kStart + 1s, 1);
  ASSERT_TRUE(after.store.Restore(before.store.Snapshot(kStart + 2s), kStart + 2s).ok());
  after.Ask(1, after.Make(day, 1), kStart + 2s, 1);
  const LimitHandle raised =
      after.Make({.algorithm = Algorithm::kFixedWindow, .requests = 1000, .period = 24h}, 2);
  EXPECT_EQ(after.Peek(1, raised, kStart + 3s).remaining, 598u);
}

TEST(LimitChange, IsCarriedToAClockThatWasSetBack) {
  CutBucket before;
  MemoryRig after;
  ASSERT_TRUE(after.store.Restore(before.store.Snapshot(kStart), kStart - 24h).ok());
  EXPECT_EQ(after.store.stats().rebased, 1u);
  after.store.Sweep(kStart - 24h + 50s);
  EXPECT_EQ(after.store.stats().buckets, 1u);
  after.store.Sweep(kStart - 24h + 51s);
  EXPECT_EQ(after.store.stats().buckets, 0u);
}

// Version 1 has no owner after a limit and no time after the count of a bucket.
TEST(Snapshot, ASnapshotOfTheFirstVersionIsRead) {
  MemoryRig before, after;
  const LimitHandle limit = before.Make(kTen);
  before.Ask(1, limit, kStart, 4);
  std::string bytes = before.store.Snapshot(kStart);
  bytes.resize(bytes.size() - 4 - 4 - 8);  // checksum, end marker of the buckets, and the time
  bytes.append(4, '\0');
  constexpr size_t kHeadBytes = 8 + 4 + 8 + 96 + 4, kLimitBytes = 3 * 1 + 3 * 8;
  bytes.erase(kHeadBytes + kLimitBytes, 8);
  bytes[8] = 1;
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  const uint32_t sum = crc.checksum();
  bytes.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  ASSERT_TRUE(after.store.Restore(bytes, kStart).ok());
  EXPECT_EQ(after.Peek(1, after.Make(kTen), kStart).remaining, 6u);
}

}  // namespace limit_change_test
}  // namespace headgate::store
