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
using capacity::RequestEnd;
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

// Clients that hang up would otherwise have any number of requests in work at once, also before
// anything is known.
TEST(ShareAuto, KeepsClientsThatHangUpFromTheOthers) {
  for (const bool known : {false, true}) {
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      SCOPED_TRACE(seed);
      auto pool = MakeAuto(seed);
      UpstreamRig rig(*pool, seed);
      for (const auto* name : {"A", "C"}) rig.SetClient(name, 200);
      if (known) {
        rig.SetClient("B", 1700);
        rig.Run(seconds(60));
      }
      rig.SetHangsUp("B", milliseconds(5));
      rig.SetClient("B", 5000);
      rig.Run(seconds(20));
      rig.TakeLoads();
      rig.Run(seconds(30));
      auto loads = rig.TakeLoads();
      EXPECT_LT(loads["B"].admitted, 30u * 1000) << known;
      for (const auto* name : {"A", "C"})
        EXPECT_GT(loads[name].answered * 10, loads[name].sent * 4) << name << known;
    }
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
  const auto pool = *SharePool::Make({.pool = {.cycle = seconds(10), .reservation = {1, 10}},
                                      .find_capacity = capacity::CapacityOptions{.limit_max = 16}});
  const Instant start = Instant::FromNanos(1'000'000'000);
  uint64_t number = 0;
  for (int i = 0; i < 16; ++i) {
    const PoolAnswer verdict = pool->Admit("A", 1, start);
    EXPECT_TRUE(verdict.admitted);
    EXPECT_FALSE(verdict.has_limit);
    number = verdict.number;
  }
  const PoolAnswer refused = pool->Admit("A", 1, start);
  EXPECT_FALSE(refused.admitted);
  EXPECT_EQ(refused.reason, Reason::kInFlight);
  EXPECT_EQ(refused.retry_after, seconds(1)) << "the latency is not known";
  pool->OnEnd({.number = number, .sent_at = start}, start);
  EXPECT_EQ(SnapshotOf(*pool, start).upstream->in_flight, 16u) << "the upstream may go on with it";
  const Instant later = start + milliseconds(250);
  EXPECT_TRUE(pool->Admit("B", 1, later).admitted);

  const PoolSnapshot snapshot = SnapshotOf(*pool, later);
  EXPECT_EQ(snapshot.capacity, std::nullopt);
  EXPECT_EQ(snapshot.upstream->in_flight, 16u);
  EXPECT_EQ(snapshot.upstream->limit, 16u);
  EXPECT_EQ(snapshot.upstream->per_1000_s, std::nullopt);
  EXPECT_EQ(snapshot.refusals, (Refusals{.in_flight = 1}));
  EXPECT_EQ(snapshot.counts, (algorithm::FairShareCounts{.allowed = 17, .not_taken = 1}));
  EXPECT_EQ(snapshot.clients.at(0).figures.demand_now, 17u);
  EXPECT_EQ(snapshot.clients.at(0).figures.used_now, 16u) << "the refused one took nothing";
}

// Nothing shows that the upstream has a queue, so nobody is refused.
TEST(ShareAuto, TheLimitDoublesUntilAnswersShowAQueue) {
  const auto pool = MakeAuto();
  const Instant start = Instant::FromNanos(1'000'000'000);
  std::vector<uint64_t> numbers;
  for (int i = 0; i < 1000; ++i) {
    const PoolAnswer verdict = pool->Admit("A", 1, start);
    ASSERT_TRUE(verdict.admitted) << i;
    numbers.push_back(verdict.number);
  }
  EXPECT_EQ(SnapshotOf(*pool, start).upstream->limit, 1024u);
  // 16 answers after 10 ms, and then 16 after 20 ms.
  for (size_t i = 0; i < 32; ++i) {
    pool->OnEnd({.number = numbers[i], .outcome = RequestEnd::kAnswered, .sent_at = start},
                start + milliseconds(i < 16 ? 10 : 20));
  }
  EXPECT_FALSE(pool->Admit("A", 1, start + milliseconds(20)).admitted);
}

// A rule would have refused it. The upstream has it, but its client has not asked the pool.
TEST(ShareAuto, ARequestThatIsLetThroughIsInFlightAndNoDemand) {
  const auto pool = MakeAuto();
  pool->SetMode(Mode::kPassthrough);
  const Instant now = Instant::FromNanos(1'000'000'000);
  const uint64_t number = pool->LetThrough(now);
  const PoolSnapshot during = SnapshotOf(*pool, now);
  EXPECT_EQ(during.upstream->in_flight, 1u);
  EXPECT_EQ(during.counts.allowed + during.counts.rejected, 0u);
  pool->OnEnd({.number = number, .outcome = RequestEnd::kAnswered, .sent_at = now},
              now + milliseconds(1));
  EXPECT_EQ(SnapshotOf(*pool, now).upstream->in_flight, 0u);
}

TEST(ShareAuto, ARequestWithoutAnIdIsInFlightInPassthrough) {
  const auto pool = MakeAuto();
  pool->SetMode(Mode::kPassthrough);
  const Instant now = Instant::FromNanos(1'000'000'000);
  const PoolAnswer verdict = pool->Admit("", 1, now);
  EXPECT_TRUE(verdict.counted_only);
  EXPECT_EQ(SnapshotOf(*pool, now).upstream->in_flight, 1u);
  pool->OnEnd({.number = verdict.number, .outcome = RequestEnd::kAnswered, .sent_at = now},
              now + milliseconds(1));
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
  PoolAnswer verdict = pool.Admit("A", 1, storm.rig.now());
  for (; verdict.admitted; verdict = pool.Admit("A", 1, storm.rig.now())) ++sent;
  EXPECT_EQ(sent, limit + limit / 2 + 1);
  EXPECT_FALSE(pool.Admit("A", 0, storm.rig.now()).admitted) << "a look";
  EXPECT_EQ(verdict.reason, Reason::kInFlight);
  EXPECT_LT(verdict.retry_after, milliseconds(20)) << "the latency of the upstream";
}

// ---- Long requests

// One client fills the limit, and its requests are not answered.
TEST(ShareAuto, AnotherClientPassesUpToItsPartOfTheLimit) {
  Storm storm(1);
  storm.rig.Run(seconds(30));
  for (const auto* name : {"A", "B", "C", "D"}) storm.rig.SetClient(name, 0);
  storm.rig.Run(seconds(20));
  SharePool& pool = *storm.pool;
  const Instant now = storm.rig.now();
  const uint32_t limit = SnapshotOf(pool, now).upstream->limit;
  while (pool.Admit("A", 1, now).admitted) {
  }
  uint32_t sent = 0;
  while (pool.Admit("new", 1, now).admitted) ++sent;
  EXPECT_EQ(sent, limit / 2);
}

TEST(ShareAuto, RequestsThatTakeMuchLongerThanUsualAreNotCounted) {
  Storm storm(1);
  storm.rig.Run(seconds(30));
  for (const auto* name : {"A", "B", "C", "D"}) storm.rig.SetClient(name, 0);
  storm.rig.Run(seconds(20));
  SharePool& pool = *storm.pool;
  const Instant start = storm.rig.now();
  const uint64_t number = pool.Admit("A", 1, start).number;
  while (pool.Admit("A", 1, start).admitted) {
  }
  const base::Duration patience = 32 * *SnapshotOf(pool, start).upstream->latency_base;
  EXPECT_GT(SnapshotOf(pool, start + patience).upstream->in_flight, 0u);
  const Instant then = start + patience + milliseconds(1);
  const PoolSnapshot snapshot = SnapshotOf(pool, then);
  EXPECT_EQ(snapshot.upstream->in_flight, 0u);
  EXPECT_GT(snapshot.upstream->long_requests, 0u);
  EXPECT_TRUE(pool.Admit("A", 1, then).admitted);
  pool.OnEnd({.number = number, .outcome = RequestEnd::kAnswered, .sent_at = start}, then);
  EXPECT_EQ(SnapshotOf(pool, then).upstream->long_requests, snapshot.upstream->long_requests - 1);
  EXPECT_EQ(SnapshotOf(pool, then).upstream->in_flight, 1u);
}

// ---- Requests that were not sent

TEST(SharePoolUnsent, TheClientGetsBackWhatItHasTaken) {
  const auto pool = *SharePool::Make({.pool = {.capacity = 2, .cycle = seconds(10)}});
  const Instant now = Instant::FromNanos(1'000'000'000);
  pool->Admit("A", 1, now);
  const PoolAnswer last = pool->Admit("A", 1, now);
  EXPECT_TRUE(last.admitted);
  EXPECT_FALSE(pool->Admit("A", 1, now).admitted);
  pool->OnEnd({.number = last.number, .was_sent = false}, now);
  const PoolAnswer again = pool->Admit("A", 1, now);
  EXPECT_TRUE(again.admitted);
  pool->OnEnd({.number = again.number}, now);
  EXPECT_FALSE(pool->Admit("A", 1, now).admitted) << "it was sent";
  EXPECT_FALSE(SnapshotOf(*pool, now).upstream.has_value());
}

TEST(SharePoolUnsent, NothingOfAnotherCycleComesBack) {
  const auto pool = *SharePool::Make({.pool = {.capacity = 2, .cycle = seconds(10)}});
  const Instant now = Instant::FromNanos(1'000'000'000);
  const PoolAnswer first = pool->Admit("A", 2, now);
  const Instant next = now + seconds(10);
  EXPECT_TRUE(pool->Admit("A", 2, next).admitted);
  pool->OnEnd({.number = first.number, .was_sent = false}, next);
  EXPECT_FALSE(pool->Admit("A", 1, next).admitted);
}

}  // namespace share_auto_test
}  // namespace headgate::share
