// A restart: a second pool takes over the state of the first one, on a clock of its own.
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "headgate/share/share_pool.h"
#include "headgate/share/upstream_rig.h"

namespace headgate::share {
namespace share_handover_test {

using base::Duration;
using base::Instant;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

// The clock of the second process is ahead by this much.
constexpr Duration kAhead = hours(1);
Instant At(Duration d) { return Instant::FromNanos(0) + hours(2) + d; }

ShareOptions FourShareForty() {
  return {.pool = {.capacity = 40, .cycle = seconds(10), .reservation = {1, 10}}};
}

std::unique_ptr<SharePool> Make(const ShareOptions& options) { return *SharePool::Make(options); }

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

std::vector<uint64_t> CapacitiesOf(SharePool& pool, Instant now) {
  std::vector<uint64_t> capacities;
  for (const ClientSnapshot& client : SnapshotOf(pool, now).clients)
    capacities.push_back(client.figures.capacity);
  return capacities;
}

std::unique_ptr<SharePool> Restart(SharePool& old, const ShareOptions& options, Instant now) {
  std::unique_ptr<SharePool> next = Make(options);
  const absl::Status status = next->TakeOver(old.HandOver(now), now + kAhead);
  EXPECT_TRUE(status.ok()) << status;
  return next;
}

TEST(ShareHandover, RenewsNobodysAllowance) {
  const auto old = Make(FourShareForty());
  EXPECT_EQ(Send(*old, "A", 40, At(seconds(0))), 40);
  EXPECT_EQ(Send(*old, "B", 1, At(seconds(1))), 0);
  const auto next = Restart(*old, FourShareForty(), At(seconds(4)));
  const PoolAnswer refused = next->Admit("A", 1, At(seconds(4)) + kAhead);
  EXPECT_FALSE(refused.admitted);
  EXPECT_EQ(refused.retry_after, seconds(6)) << "the cycle ends when it was due";
  EXPECT_EQ(Send(*next, "B", 19, At(milliseconds(9'999)) + kAhead), 0);
  EXPECT_EQ(Send(*next, "B", 40, At(seconds(10)) + kAhead), 20);
}

// Cycle 2 of the worked example, with a restart in its middle.
TEST(ShareHandover, DemandsGoOn) {
  const auto old = Make(FourShareForty());
  for (const auto* name : {"A", "B", "C", "D"}) Send(*old, name, 1, At(seconds(0)));
  Send(*old, "A", 1, At(seconds(1)));
  Send(*old, "B", 14, At(seconds(1)));
  Send(*old, "C", 9, At(seconds(1)));
  Send(*old, "D", 9, At(seconds(1)));
  EXPECT_EQ(Send(*old, "A", 3, At(seconds(11))), 3);
  EXPECT_EQ(Send(*old, "B", 10, At(seconds(11))), 10);
  EXPECT_EQ(Send(*old, "C", 25, At(seconds(11))), 10);
  const auto next = Restart(*old, FourShareForty(), At(seconds(15)));
  EXPECT_EQ(Send(*next, "B", 5, At(seconds(16)) + kAhead), 5);
  EXPECT_EQ(Send(*next, "C", 25, At(seconds(16)) + kAhead), 0);
  EXPECT_EQ(Send(*next, "D", 10, At(seconds(16)) + kAhead), 10);
  EXPECT_THAT(CapacitiesOf(*next, At(seconds(20)) + kAhead), ElementsAre(3, 11, 16, 10));
}

TEST(ShareHandover, CountsWhatWasAdmittedBefore) {
  const auto old = Make(FourShareForty());
  Send(*old, "A", 15, At(seconds(0)));
  Send(*old, "B", 1, At(seconds(0)));
  const auto next = Make(FourShareForty());
  EXPECT_EQ(Send(*next, "A", 3, At(seconds(4)) + kAhead), 3);
  EXPECT_EQ(Send(*next, "C", 2, At(seconds(4)) + kAhead), 2);
  ASSERT_TRUE(next->TakeOver(old->HandOver(At(seconds(5))), At(seconds(5)) + kAhead).ok());
  // 13 for each of three, of which A has had 15 and 3.
  EXPECT_EQ(Send(*next, "A", 1, At(seconds(6)) + kAhead), 0);
  EXPECT_EQ(Send(*next, "B", 20, At(seconds(6)) + kAhead), 12);
  EXPECT_EQ(Send(*next, "C", 20, At(seconds(6)) + kAhead), 7) << "40 together";
  EXPECT_EQ(SnapshotOf(*next, At(seconds(6)) + kAhead).counts,
            (algorithm::FairShareCounts{.allowed = 5 + 19, .rejected = 1 + 8 + 13}))
      << "its own, since it began";
}

TEST(ShareHandover, AnotherCapacityIsInForceForTheRestOfTheCycle) {
  const auto old = Make(FourShareForty());
  EXPECT_EQ(Send(*old, "A", 40, At(seconds(0))), 40);
  ShareOptions more = FourShareForty();
  more.pool.capacity = 60;
  const auto next = Restart(*old, more, At(seconds(5)));
  EXPECT_EQ(Send(*next, "A", 40, At(seconds(5)) + kAhead), 10) << "half of 20";
  EXPECT_EQ(Send(*next, "A", 100, At(seconds(10)) + kAhead), 60);
}

TEST(ShareHandover, AnotherCycleBeginsAfterTheRunningOne) {
  const auto old = Make(FourShareForty());
  EXPECT_EQ(Send(*old, "A", 40, At(seconds(0))), 40);
  ShareOptions longer = FourShareForty();
  longer.pool.capacity = 240;
  longer.pool.cycle = seconds(60);
  longer.pool.is_paced = false;
  const auto next = Restart(*old, longer, At(seconds(5)));
  EXPECT_EQ(Send(*next, "A", 1, At(seconds(9)) + kAhead), 0);
  EXPECT_EQ(Send(*next, "A", 300, At(seconds(10)) + kAhead), 240);
  EXPECT_EQ(Send(*next, "A", 1, At(seconds(69)) + kAhead), 0);
  EXPECT_EQ(Send(*next, "A", 1, At(seconds(70)) + kAhead), 1);
}

// Without requests in between, nobody notices the restart.
TEST(ShareHandover, DecidesAsThePoolThatIsNotRestarted) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    std::mt19937_64 random(seed);
    ShareOptions options = FourShareForty();
    options.pool.reclaim =
        seed % 2 == 0 ? algorithm::Reclaim::kAtOnce : algorithm::Reclaim::kNextCycle;
    const auto stays = Make(options);
    auto restarted = Make(options);
    Duration ahead{0};
    Instant now = At(seconds(0));
    for (int step = 0; step < 300; ++step) {
      now += milliseconds(random() % 400);
      const std::string client(1, static_cast<char>('a' + random() % 5));
      const PoolAnswer one = stays->Admit(client, 1, now);
      const PoolAnswer two = restarted->Admit(client, 1, now + ahead);
      ASSERT_EQ(one.admitted, two.admitted) << "seed " << seed << ", step " << step;
      ASSERT_EQ(one.remaining, two.remaining) << "seed " << seed << ", step " << step;
      ASSERT_EQ(one.retry_after, two.retry_after) << "seed " << seed << ", step " << step;
      if (random() % 40 != 0) continue;
      const HandedPool handed = restarted->HandOver(now + ahead);
      ahead += seconds(random() % 100);
      restarted = Make(options);
      ASSERT_TRUE(restarted->TakeOver(handed, now + ahead).ok());
    }
  }
}

TEST(ShareHandover, AStateThatIsNoneChangesNothing) {
  const auto old = Make(FourShareForty());
  Send(*old, "A", 40, At(seconds(0)));
  const HandedPool good = old->HandOver(At(seconds(1)));
  HandedPool cut = good;
  cut.shares.pop_back();
  // Its times lie far ahead of its own.
  HandedPool early = good;
  early.at = base::kInstantMax;
  const auto next = Make(FourShareForty());
  for (const HandedPool& handed : {HandedPool{.shares = "?"}, cut, early})
    EXPECT_FALSE(next->TakeOver(handed, At(seconds(1))).ok());
  EXPECT_TRUE(next->TakeOver({}, At(seconds(1))).ok());
  EXPECT_EQ(Send(*next, "A", 40, At(seconds(1))), 40);
}

// ---- capacity: auto

ShareOptions Auto() {
  return {.pool = {.cycle = seconds(10), .reservation = {1, 10}},
          .find_capacity = capacity::CapacityOptions{}};
}

TEST(ShareHandover, TheFoundCapacityIsThereAtOnce) {
  const auto old = Make(Auto());
  UpstreamRig rig(*old, 1);
  for (const auto* name : {"A", "C", "D"}) rig.SetClient(name, 100);
  rig.SetClient("B", 1700);
  rig.Run(seconds(30));
  const PoolSnapshot before = SnapshotOf(*old, rig.now());
  ASSERT_TRUE(before.capacity.has_value());
  const auto next = Restart(*old, Auto(), rig.now());
  const PoolSnapshot after = SnapshotOf(*next, rig.now() + kAhead);
  EXPECT_EQ(after.capacity, before.capacity);
  ASSERT_TRUE(after.upstream.has_value());
  EXPECT_EQ(after.upstream->per_1000_s, before.upstream->per_1000_s);
  EXPECT_EQ(after.upstream->latency_base, before.upstream->latency_base);
  ASSERT_EQ(after.clients.size(), before.clients.size());
  for (size_t i = 0; i < after.clients.size(); ++i)
    EXPECT_EQ(after.clients[i].figures.used_now, before.clients[i].figures.used_now);
}

TEST(ShareHandover, BetweenAFixedCapacityAndOneThatIsFound) {
  const auto fixed = Make(FourShareForty());
  Send(*fixed, "A", 40, At(seconds(0)));
  const auto finds = Restart(*fixed, Auto(), At(seconds(1)));
  EXPECT_FALSE(SnapshotOf(*finds, At(seconds(1)) + kAhead).capacity.has_value());
  EXPECT_EQ(Send(*finds, "A", 1, At(seconds(1)) + kAhead), 1);
  // It has found none yet, so a whole cycle begins.
  const auto again = Restart(*finds, FourShareForty(), At(seconds(2)) + kAhead);
  EXPECT_EQ(Send(*again, "A", 100, At(seconds(2)) + kAhead + kAhead), 40);
}

}  // namespace share_handover_test
}  // namespace headgate::share
