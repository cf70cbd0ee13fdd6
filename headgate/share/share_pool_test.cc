#include "headgate/share/share_pool.h"

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "headgate/base/hash_rig.h"

namespace headgate::share {
namespace share_pool_test {

using base::Duration;
using base::Instant;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::StartsWith;

Instant At(Duration d) { return Instant::FromNanos(0) + d; }

ShareOptions FourShareForty() {
  return {.pool = {.capacity = 40, .cycle = seconds(10), .reservation = {1, 10}}};
}

std::unique_ptr<SharePool> Make(const ShareOptions& options) { return *SharePool::Make(options); }

// Sends `count` requests of one client; returns how many were admitted.
int Send(SharePool& pool, std::string_view client, int count, Instant now) {
  int admitted = 0;
  for (int i = 0; i < count; ++i) admitted += pool.Admit(client, 1, now).admitted;
  return admitted;
}

PoolSnapshot SnapshotOf(SharePool& pool, Instant now) {
  PoolSnapshot snapshot;
  pool.TakeSnapshot(now, snapshot);
  return snapshot;
}

// In order of arrival.
std::vector<uint64_t> CapacitiesOf(SharePool& pool, Instant now) {
  std::vector<uint64_t> capacities;
  for (const ClientSnapshot& client : SnapshotOf(pool, now).clients)
    capacities.push_back(client.figures.capacity);
  return capacities;
}

// ---- Sharing

TEST(SharePool, TheWorkedExampleOfFourClientsSharingForty) {
  const auto pool = Make(FourShareForty());
  for (const auto* name : {"A", "B", "C", "D"}) EXPECT_EQ(Send(*pool, name, 1, At(seconds(0))), 1);
  EXPECT_THAT(CapacitiesOf(*pool, At(seconds(0))), ElementsAre(10, 10, 10, 10));
  EXPECT_EQ(Send(*pool, "A", 1, At(seconds(1))), 1);
  EXPECT_EQ(Send(*pool, "B", 14, At(seconds(1))), 9);
  EXPECT_EQ(Send(*pool, "C", 9, At(seconds(1))), 9);
  EXPECT_EQ(Send(*pool, "D", 9, At(seconds(1))), 9);

  EXPECT_THAT(CapacitiesOf(*pool, At(seconds(10))), ElementsAre(5, 15, 10, 10));
  EXPECT_EQ(Send(*pool, "A", 3, At(seconds(11))), 3);
  EXPECT_EQ(Send(*pool, "B", 15, At(seconds(11))), 15);
  EXPECT_EQ(Send(*pool, "C", 50, At(seconds(11))), 10);
  EXPECT_EQ(Send(*pool, "D", 10, At(seconds(11))), 10);

  EXPECT_THAT(CapacitiesOf(*pool, At(seconds(20))), ElementsAre(3, 11, 16, 10));
  EXPECT_EQ(Send(*pool, "B", 15, At(seconds(21))), 11);
  EXPECT_EQ(Send(*pool, "C", 50, At(seconds(21))), 16);
  EXPECT_EQ(Send(*pool, "D", 5, At(seconds(21))), 5);

  EXPECT_THAT(CapacitiesOf(*pool, At(seconds(30))), ElementsAre(1, 12, 22, 5));
}

TEST(SharePool, SaysHowMuchIsLeftAndWhenMoreComes) {
  const auto pool = Make(FourShareForty());
  PoolAnswer verdict = pool->Admit("A", 3, At(seconds(2)));
  EXPECT_TRUE(verdict.admitted);
  EXPECT_FALSE(verdict.counted_only);
  EXPECT_EQ(verdict.reason, Reason::kWithinShare);
  EXPECT_TRUE(verdict.has_limit);
  EXPECT_EQ(verdict.limit, 40u);
  EXPECT_EQ(verdict.remaining, 37u);
  EXPECT_EQ(verdict.retry_after, seconds(0));
  EXPECT_EQ(verdict.reset_after, seconds(10));
  verdict = pool->Admit("A", 38, At(seconds(5)));
  EXPECT_FALSE(verdict.admitted);
  EXPECT_EQ(verdict.reason, Reason::kShareUsed);
  EXPECT_EQ(verdict.remaining, 37u);
  EXPECT_EQ(verdict.retry_after, seconds(7));
  verdict = pool->Admit("A", 41, At(seconds(5)));
  EXPECT_FALSE(verdict.admitted);
  EXPECT_EQ(verdict.reason, Reason::kNeverFits);
  EXPECT_EQ(verdict.retry_after, algorithm::kNever);
  verdict = pool->Admit("A", 0, At(seconds(5)));
  EXPECT_TRUE(verdict.admitted) << "a look";
  EXPECT_EQ(verdict.remaining, 37u);
  EXPECT_EQ(SnapshotOf(*pool, At(seconds(5))).refusals,
            (Refusals{.share_used = 1, .never_fits = 1}));
}

TEST(SharePool, FollowsTheWeightsOfItsOptions) {
  ShareOptions options = FourShareForty();
  options.weights = {{"A", 3}};
  const auto pool = Make(options);
  for (const auto* name : {"A", "B"}) Send(*pool, name, 1, At(seconds(0)));
  EXPECT_THAT(CapacitiesOf(*pool, At(seconds(0))), ElementsAre(30, 10));
}

// ---- Names

TEST(SharePool, RefusesARequestWithoutAnId) {
  const auto pool = Make(FourShareForty());
  const PoolAnswer verdict = pool->Admit("", 1, At(seconds(0)));
  EXPECT_FALSE(verdict.admitted);
  EXPECT_EQ(verdict.reason, Reason::kNoClient);
  EXPECT_FALSE(verdict.has_limit);
  EXPECT_EQ(verdict.retry_after, algorithm::kNever);
  const PoolSnapshot snapshot = SnapshotOf(*pool, At(seconds(0)));
  EXPECT_EQ(snapshot.refusals, (Refusals{.no_client = 1}));
  EXPECT_TRUE(snapshot.clients.empty());
}

TEST(SharePool, RequestsWithoutAnIdMayBeOneClient) {
  ShareOptions options = FourShareForty();
  options.without_id = WithoutId::kShareOne;
  options.anonymous = "nobody";
  options.weights = {{"nobody", 3}};
  const auto pool = Make(options);
  EXPECT_EQ(Send(*pool, "", 1, At(seconds(0))), 1);
  EXPECT_EQ(Send(*pool, "B", 1, At(seconds(0))), 1);
  EXPECT_EQ(Send(*pool, "", 50, At(seconds(1))), 29);
  EXPECT_EQ(SnapshotOf(*pool, At(seconds(1))).clients.at(0).name, "nobody");
}

TEST(SharePool, ALongIdIsReplacedByItsHash) {
  ShareOptions options = FourShareForty();
  options.client_id_bytes_max = 8;
  options.secret = base::SecretFromSeed(1);
  options.weights = {{"long-client-id-1", 3}};
  const auto pool = Make(options);
  for (const auto* id : {"12345678", "long-client-id-1", "long-client-id-2"})
    EXPECT_EQ(Send(*pool, id, 1, At(seconds(0))), 1);
  EXPECT_EQ(Send(*pool, std::string(100'000, 'x'), 1, At(seconds(0))), 1);
  EXPECT_EQ(Send(*pool, "long-client-id-1", 1, At(seconds(0))), 1);
  const PoolSnapshot snapshot = SnapshotOf(*pool, At(seconds(0)));
  ASSERT_EQ(snapshot.clients.size(), 4u);
  EXPECT_EQ(snapshot.clients[0].name, "12345678");
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(snapshot.clients[i].name.size(), 37u);
    EXPECT_THAT(snapshot.clients[i].name, StartsWith("hash-"));
  }
  EXPECT_NE(snapshot.clients[1].name, snapshot.clients[2].name);
  EXPECT_EQ(snapshot.clients[1].figures.weight, 3u);
  EXPECT_EQ(snapshot.clients[1].figures.used_now, 2u);
}

TEST(SharePool, ANewClientReplacesTheOneWithTheLongestSilence) {
  ShareOptions options = FourShareForty();
  options.pool.clients_max = 2;
  const auto pool = Make(options);
  for (const auto* name : {"A", "B"}) Send(*pool, name, 1, At(seconds(0)));
  Send(*pool, "A", 1, At(seconds(3)));
  EXPECT_EQ(Send(*pool, "C", 1, At(seconds(4))), 1);
  const PoolSnapshot snapshot = SnapshotOf(*pool, At(seconds(4)));
  ASSERT_EQ(snapshot.clients.size(), 2u);
  EXPECT_EQ(snapshot.clients[0].name, "A");
  EXPECT_EQ(snapshot.clients[1].name, "C");
  EXPECT_EQ(snapshot.clients_replaced, 1u);
  EXPECT_EQ(snapshot.refusals, Refusals{});
}

// Ten requests of a second have other names. Their clients do not lock others out.
TEST(SharePool, AFloodOfNamesLocksNobodyOut) {
  ShareOptions options = FourShareForty();
  options.pool.clients_max = 16;
  options.pool.capacity = 400;
  const auto pool = Make(options);
  int name = 0;
  for (int i = 0; i < 600; ++i) {
    const Instant now = At(milliseconds(100) * i);
    pool->Admit("name" + std::to_string(name++), 1, now);
    if (i % 10 == 5) {
      EXPECT_EQ(Send(*pool, "A", 2, now + milliseconds(1)), 2) << i;
    }
  }
  EXPECT_EQ(Send(*pool, "new", 1, At(seconds(61))), 1);
  EXPECT_EQ(SnapshotOf(*pool, At(seconds(61))).refusals, Refusals{});
}

TEST(SharePool, RefusesANewClientIfNoneIsSilent) {
  ShareOptions options = FourShareForty();
  options.pool.clients_max = 2;
  const auto pool = Make(options);
  for (const auto* name : {"A", "B"}) Send(*pool, name, 1, At(seconds(0)));
  const PoolAnswer verdict = pool->Admit("C", 1, At(seconds(0)));
  EXPECT_FALSE(verdict.admitted);
  EXPECT_EQ(verdict.reason, Reason::kTooManyClients);
  EXPECT_FALSE(verdict.has_limit);
  EXPECT_EQ(verdict.retry_after, seconds(10));
  EXPECT_EQ(SnapshotOf(*pool, At(seconds(0))).refusals, (Refusals{.too_many_clients = 1}));
}

// ---- Passthrough

TEST(SharePool, PassthroughDecidesAndCountsAndLetsEverythingThrough) {
  ShareOptions options = FourShareForty();
  options.mode = Mode::kPassthrough;
  const auto passing = Make(options);
  const auto enforcing = Make(FourShareForty());
  uint64_t counted_only = 0;
  for (int step = 0; step < 400; ++step) {
    const std::string client(1, static_cast<char>('A' + step % 7 % 3));
    const Instant now = At(milliseconds(100) * step);
    const PoolAnswer passed = passing->Admit(client, 1, now);
    const PoolAnswer decided = enforcing->Admit(client, 1, now);
    EXPECT_TRUE(passed.admitted);
    EXPECT_EQ(passed.counted_only, !decided.admitted) << "step " << step;
    EXPECT_EQ(passed.reason, decided.reason);
    EXPECT_EQ(passed.remaining, decided.remaining);
    EXPECT_EQ(passed.retry_after, seconds(0));
    counted_only += passed.counted_only;
  }
  EXPECT_GT(counted_only, 0u);
  const Instant end = At(seconds(40));
  const PoolSnapshot passed = SnapshotOf(*passing, end), decided = SnapshotOf(*enforcing, end);
  EXPECT_EQ(passed.mode, Mode::kPassthrough);
  EXPECT_EQ(passed.counted_only, counted_only);
  EXPECT_EQ(decided.counted_only, 0u);
  EXPECT_EQ(passed.counts, decided.counts);
  EXPECT_EQ(passed.refusals, decided.refusals);
  EXPECT_EQ(CapacitiesOf(*passing, end), CapacitiesOf(*enforcing, end));
}

TEST(SharePool, PassthroughLetsARequestWithoutAnIdThrough) {
  ShareOptions options = FourShareForty();
  options.mode = Mode::kPassthrough;
  const auto pool = Make(options);
  const PoolAnswer verdict = pool->Admit("", 1, At(seconds(0)));
  EXPECT_TRUE(verdict.admitted);
  EXPECT_TRUE(verdict.counted_only);
  EXPECT_EQ(verdict.reason, Reason::kNoClient);
}

TEST(SharePool, TheModeChangesWhileItRuns) {
  const auto pool = Make(FourShareForty());
  EXPECT_EQ(Send(*pool, "A", 50, At(seconds(0))), 40);
  pool->SetMode(Mode::kPassthrough);
  EXPECT_EQ(pool->mode(), Mode::kPassthrough);
  EXPECT_EQ(Send(*pool, "A", 5, At(seconds(1))), 5);
  pool->SetMode(Mode::kEnforce);
  EXPECT_EQ(Send(*pool, "A", 5, At(seconds(2))), 0);
  EXPECT_EQ(SnapshotOf(*pool, At(seconds(2))).counts,
            (algorithm::FairShareCounts{.allowed = 40, .rejected = 20}));
}

// ---- Snapshots

TEST(SharePool, ASnapshotHasTheFiguresOfTheCycle) {
  const auto pool = Make(FourShareForty());
  Send(*pool, "A", 3, At(seconds(0)));
  Send(*pool, "B", 50, At(seconds(0)));
  PoolSnapshot snapshot = SnapshotOf(*pool, At(seconds(12)));
  EXPECT_EQ(snapshot.capacity, 40u);
  EXPECT_EQ(snapshot.cycle.number, 2u);
  EXPECT_EQ(snapshot.cycle.start, At(seconds(10)));
  EXPECT_EQ(snapshot.cycle.last_end, algorithm::CycleEnd::kDue);
  EXPECT_FALSE(snapshot.upstream.has_value());
  ASSERT_EQ(snapshot.clients.size(), 2u);
  EXPECT_EQ(snapshot.clients[0].name, "A");
  EXPECT_EQ(snapshot.clients[0].figures.demand, 3u);
  EXPECT_EQ(snapshot.clients[0].figures.lent, 17u);
  EXPECT_EQ(snapshot.clients[1].figures.capacity, 37u);
  EXPECT_EQ(snapshot.clients[1].figures.borrowed, 17u);
  EXPECT_EQ(snapshot.clients[1].figures.counts,
            (algorithm::FairShareCounts{.allowed = 20, .rejected = 30}));
}

TEST(SharePool, ASnapshotKeepsTheLargestAndAddsUpTheOthers) {
  const auto pool = Make(FourShareForty());
  Send(*pool, "A", 3, At(seconds(0)));
  Send(*pool, "B", 9, At(seconds(0)));
  Send(*pool, "C", 3, At(seconds(0)));
  Send(*pool, "D", 1, At(seconds(0)));
  PoolSnapshot snapshot = SnapshotOf(*pool, At(seconds(10)));
  OrderByDemand(snapshot);
  KeepFirst(snapshot, 2);
  ASSERT_EQ(snapshot.clients.size(), 2u);
  EXPECT_EQ(snapshot.clients[0].name, "B");
  EXPECT_EQ(snapshot.clients[1].name, "A");
  EXPECT_EQ(snapshot.others_count, 2u);
  EXPECT_EQ(snapshot.others.demand, 4u);
  EXPECT_EQ(snapshot.others.counts.allowed, 4u);
  EXPECT_EQ(snapshot.others.capacity + snapshot.clients[0].figures.capacity +
                snapshot.clients[1].figures.capacity,
            40u);
  pool->TakeSnapshot(At(seconds(10)), snapshot);
  EXPECT_EQ(snapshot.clients.size(), 4u);
  EXPECT_EQ(snapshot.others_count, 0u);
  OrderByDemand(snapshot);
  KeepFirst(snapshot, 10);
  EXPECT_EQ(snapshot.clients.size(), 4u);
}

// ---- Threads

TEST(SharePool, AdmitsItsCapacityWhateverTheThreads) {
  constexpr int kThreads = 4;
  constexpr int kEach = 2000;
  ShareOptions options = FourShareForty();
  options.pool.capacity = 4001;
  options.pool.is_paced = false;
  const auto pool = Make(options);
  std::vector<int> admitted(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      PoolSnapshot snapshot;
      for (int i = 0; i < kEach; ++i) {
        admitted[static_cast<size_t>(t)] += pool->Admit("one", 1, At(Duration(i))).admitted;
        if (i % 500 == 0) pool->TakeSnapshot(At(Duration(i)), snapshot);
        if (i % 500 == 1) pool->SetMode(Mode::kEnforce);
      }
    });
  }
  int sum = 0;
  for (std::thread& thread : threads) thread.join();
  for (const int count : admitted) sum += count;
  EXPECT_EQ(sum, 4001);
  EXPECT_EQ(SnapshotOf(*pool, At(seconds(1))).counts,
            (algorithm::FairShareCounts{.allowed = 4001, .rejected = kThreads * kEach - 4001}));
}

}  // namespace share_pool_test
}  // namespace headgate::share
