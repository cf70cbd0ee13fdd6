// `capacity: auto`: the pool follows the capacity that is found, and one client's storm is kept
// from the others. The upstream can do 1000 per second: 10 workers, 10 ms each.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "headgate/share/upstream_rig.h"

namespace headgate::share {
namespace share_auto_test {

using base::Duration;
using base::Instant;
using capacity::Outcome;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::unique_ptr<SharePool> MakeAuto(uint64_t seed = 1) {
  return *SharePool::Make({.pool = {.cycle = seconds(10), .reservation = {1, 10}},
                           .find_capacity = capacity::CapacityOptions{.seed = seed}});
}

PoolSnapshot SnapshotOf(SharePool& pool, Instant now) {
  PoolSnapshot snapshot;
  pool.TakeSnapshot(now, snapshot);
  return snapshot;
}

// The capacity that is found, per second; 0 if none is.
uint64_t FoundPerSecond(SharePool& pool, Instant now) {
  return SnapshotOf(pool, now).upstream->per_1000_s.value_or(0) / 1000;
}

uint64_t AnsweredOf(const std::map<std::string, Load>& loads) {
  uint64_t sum = 0;
  for (const auto& [name, load] : loads) sum += load.answered;
  return sum;
}

constexpr uint64_t kSeeds = 3;

// Within 15 %.
auto IsNear(uint64_t best) {
  return ::testing::AllOf(::testing::Ge(best * 85 / 100), ::testing::Le(best * 115 / 100));
}

// Three clients that send 100/s each, and one that sends 1700/s.
struct Storm {
  explicit Storm(uint64_t seed) : pool(MakeAuto(seed)), rig(*pool, seed) {
    for (const auto* name : {"A", "C", "D"}) rig.SetClient(name, 100);
    rig.SetClient("B", 1700);
  }
  std::unique_ptr<SharePool> pool;
  UpstreamRig rig;
};

TEST(ShareAuto, FindsTheCapacityIn30SecondsAndUsesIt) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Storm storm(seed);
    storm.rig.Run(seconds(30));
    EXPECT_THAT(FoundPerSecond(*storm.pool, storm.rig.now()), IsNear(1000));
    storm.rig.TakeLoads();
    storm.rig.Run(seconds(40));
    EXPECT_THAT(FoundPerSecond(*storm.pool, storm.rig.now()), IsNear(1000));
    const PoolSnapshot snapshot = SnapshotOf(*storm.pool, storm.rig.now());
    EXPECT_THAT(*snapshot.capacity, IsNear(10'000)) << "per cycle";
    EXPECT_GE(AnsweredOf(storm.rig.TakeLoads()), 36'000u) << "90 % of the best";
  }
}

// Without pace, the limit of requests in flight refuses 45 % of everybody's requests.
TEST(ShareAuto, KeepsAStormFromTheOthers) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Storm storm(seed);
    storm.rig.Run(seconds(20));
    storm.rig.TakeLoads();
    storm.rig.Run(seconds(60));
    auto loads = storm.rig.TakeLoads();
    for (const auto* name : {"A", "C", "D"})
      EXPECT_GE(loads[name].answered * 100, loads[name].sent * 92) << name;
    EXPECT_GE(loads["B"].answered, 38'000u) << "what the others leave is 42,000";
  }
}

TEST(ShareAuto, FollowsAnUpstreamThatHalvesAndDoubles) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Storm storm(seed);
    storm.rig.Run(seconds(30));
    storm.rig.SetWorkers(5);
    storm.rig.Run(seconds(30));
    EXPECT_THAT(FoundPerSecond(*storm.pool, storm.rig.now()), IsNear(500));
    EXPECT_THAT(*SnapshotOf(*storm.pool, storm.rig.now()).capacity, IsNear(5'000));
    storm.rig.SetWorkers(10);
    storm.rig.Run(seconds(30));
    EXPECT_THAT(FoundPerSecond(*storm.pool, storm.rig.now()), IsNear(1000));
    EXPECT_THAT(*SnapshotOf(*storm.pool, storm.rig.now()).capacity, IsNear(10'000));
  }
}

TEST(ShareAuto, PassthroughFindsTheCapacityToo) {
  Storm storm(1);
  storm.pool->SetMode(Mode::kPassthrough);
  storm.rig.Run(seconds(30));
  EXPECT_THAT(FoundPerSecond(*storm.pool, storm.rig.now()), IsNear(1000));
  for (const auto& [name, load] : storm.rig.TakeLoads()) EXPECT_EQ(load.admitted, load.sent);
  const PoolSnapshot snapshot = SnapshotOf(*storm.pool, storm.rig.now());
  EXPECT_GT(snapshot.counted_only, 0u);
  EXPECT_EQ(snapshot.counted_only, snapshot.refusals.in_flight + snapshot.refusals.share_used);
}

// ---- Before a capacity is found

TEST(ShareAuto, OnlyLimitsRequestsInFlightAtFirst) {
  const auto pool = MakeAuto();
  EXPECT_TRUE(pool->counts_in_flight());
  const Instant start = Instant::FromNanos(1'000'000'000);
  for (int i = 0; i < 16; ++i) {
    const Verdict verdict = pool->Admit("A", 1, start);
    EXPECT_TRUE(verdict.admitted);
    EXPECT_FALSE(verdict.has_limit);
  }
  const Verdict refused = pool->Admit("A", 1, start);
  EXPECT_FALSE(refused.admitted);
  EXPECT_EQ(refused.reason, Reason::kInFlight);
  EXPECT_EQ(refused.retry_after, seconds(1)) << "the latency is not known";
  pool->OnEnd(Outcome::kLeft, start, start);
  EXPECT_TRUE(pool->Admit("B", 1, start).admitted);

  const PoolSnapshot snapshot = SnapshotOf(*pool, start);
  EXPECT_EQ(snapshot.capacity, std::nullopt);
  EXPECT_EQ(snapshot.upstream->in_flight, 16u);
  EXPECT_EQ(snapshot.upstream->limit, 16u);
  EXPECT_EQ(snapshot.upstream->per_1000_s, std::nullopt);
  EXPECT_EQ(snapshot.refusals, (Refusals{.in_flight = 1}));
  EXPECT_EQ(snapshot.counts, (algorithm::FairShareCounts{.allowed = 17, .not_taken = 1}));
  EXPECT_EQ(snapshot.clients.at(0).figures.demand_now, 17u);
  EXPECT_EQ(snapshot.clients.at(0).figures.used_now, 16u) << "the refused one took nothing";
}

// A rule would have refused it. The upstream has it, but its client has not asked the pool.
TEST(ShareAuto, ARequestThatIsLetThroughIsInFlightAndNoDemand) {
  const auto pool = MakeAuto();
  pool->SetMode(Mode::kPassthrough);
  const Instant now = Instant::FromNanos(1'000'000'000);
  pool->LetThrough(now);
  const PoolSnapshot during = SnapshotOf(*pool, now);
  EXPECT_EQ(during.upstream->in_flight, 1u);
  EXPECT_EQ(during.counts.allowed + during.counts.rejected, 0u);
  pool->OnEnd(Outcome::kAnswered, now, now + milliseconds(1));
  EXPECT_EQ(SnapshotOf(*pool, now).upstream->in_flight, 0u);
}

TEST(ShareAuto, ARequestWithoutAnIdIsInFlightInPassthrough) {
  const auto pool = MakeAuto();
  pool->SetMode(Mode::kPassthrough);
  const Instant now = Instant::FromNanos(1'000'000'000);
  EXPECT_TRUE(pool->Admit("", 1, now).counted_only);
  EXPECT_EQ(SnapshotOf(*pool, now).upstream->in_flight, 1u);
  pool->OnEnd(Outcome::kAnswered, now, now + milliseconds(1));
  EXPECT_EQ(SnapshotOf(*pool, now).upstream->in_flight, 0u);
}

// ---- After it

TEST(ShareAuto, SendsMoreThanTheShareToSeeWhetherMoreCanBeDone) {
  Storm storm(1);
  storm.rig.SetWorkers(5);
  storm.rig.Run(seconds(30));
  storm.rig.TakeLoads();
  storm.rig.SetWorkers(10);
  storm.rig.Run(seconds(30));
  uint64_t above_share = 0;
  for (const auto& [name, load] : storm.rig.TakeLoads()) above_share += load.above_share;
  EXPECT_GT(above_share, 0u);
  EXPECT_GE(SnapshotOf(*storm.pool, storm.rig.now()).counts.sent_anyway, above_share);
  EXPECT_LE(above_share, 6'000u) << "a quarter of the time, half as much again";
}

TEST(ShareAuto, AClientOnPaceIsSentAboveTheLimitUpToHalfAsMuchAgain) {
  Storm storm(1);
  storm.rig.Run(seconds(30));
  // Everybody is quiet until the middle of a later cycle, so all are on pace.
  for (const auto* name : {"A", "B", "C", "D"}) storm.rig.SetClient(name, 0);
  storm.rig.Run(seconds(20));
  SharePool& pool = *storm.pool;
  const PoolSnapshot before = SnapshotOf(pool, storm.rig.now());
  ASSERT_EQ(before.upstream->in_flight, 0u);
  const uint32_t limit = before.upstream->limit;
  uint32_t sent = 0;
  EXPECT_TRUE(pool.Admit("A", 0, storm.rig.now()).admitted) << "a look";
  while (pool.Admit("A", 1, storm.rig.now()).admitted) ++sent;
  EXPECT_EQ(sent, limit + limit / 2 + 1);
  EXPECT_FALSE(pool.Admit("A", 0, storm.rig.now()).admitted) << "a look";
  const Verdict stranger = pool.Admit("new", 1, storm.rig.now());
  EXPECT_EQ(stranger.reason, Reason::kInFlight);
  EXPECT_LT(stranger.retry_after, milliseconds(20)) << "the latency of the upstream";
  for (uint32_t i = limit; i < sent; ++i)
    pool.OnEnd(Outcome::kLeft, storm.rig.now(), storm.rig.now());
  EXPECT_EQ(pool.Admit("stranger", 1, storm.rig.now()).reason, Reason::kInFlight);
  EXPECT_TRUE(pool.Admit("C", 1, storm.rig.now()).admitted);
}

TEST(ShareAuto, ACapacityThatIsANumberCountsNothingInFlight) {
  const auto pool = *SharePool::Make({.pool = {.capacity = 40, .cycle = seconds(10)}});
  EXPECT_FALSE(pool->counts_in_flight());
  pool->OnEnd(Outcome::kAnswered, Instant::FromNanos(0), Instant::FromNanos(1));
  EXPECT_FALSE(SnapshotOf(*pool, Instant::FromNanos(1)).upstream.has_value());
}

}  // namespace share_auto_test
}  // namespace headgate::share
