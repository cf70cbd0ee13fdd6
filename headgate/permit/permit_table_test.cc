#include "headgate/permit/permit_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace headgate::permit {
namespace permit_table_test {

using base::Hash128;
using base::Instant;
using namespace std::chrono_literals;
using Kind = Ask::Kind;
using Outcome = Answer::Outcome;

constexpr Instant kStart = Instant::FromNanos(1'790'000'000'000'000'000);

// In the shards one after the other.
Hash128 KeyOf(uint64_t number) { return {.low = number * 0x9e3779b97f4a7c15, .high = number}; }
Id IdOf(uint64_t number) { return {.low = number, .high = 1}; }

Ask Acquire(uint64_t id, uint32_t max = 1) {
  return {.kind = Kind::kAcquire, .id = IdOf(id), .max = max, .ttl = 30s};
}
Ask Release(uint64_t id) { return {.kind = Kind::kRelease, .id = IdOf(id)}; }

TEST(PermitTable, KeepsTheKeysApart) {
  PermitTable table;
  EXPECT_EQ(table.Do(KeyOf(1), Acquire(1), kStart).outcome, Outcome::kGranted);
  EXPECT_EQ(table.Do(KeyOf(1), Acquire(2), kStart).outcome, Outcome::kFull);
  EXPECT_EQ(table.Do(KeyOf(2), Acquire(2), kStart).outcome, Outcome::kGranted);
  EXPECT_EQ(table.CountAt(kStart), 2);
  EXPECT_EQ(table.Do(KeyOf(2), Release(1), kStart).outcome, Outcome::kUnknown);
  EXPECT_EQ(table.Do(KeyOf(1), Release(1), kStart).outcome, Outcome::kReleased);
  EXPECT_EQ(table.CountAt(kStart), 1);
  EXPECT_EQ(table.CountAt(kStart + 30s), 0);
}

TEST(PermitTable, ALimitOfNothingNeedsNoRoom) {
  PermitTable table({.keys_max = 1, .permits_max = 1});
  EXPECT_EQ(table.Do(KeyOf(1), Acquire(1, 0), kStart).outcome, Outcome::kFull);
  EXPECT_EQ(table.refused(), 0);
}

TEST(PermitTable, RefusesMoreKeysThanItMayKeepUntilOneIsGone) {
  PermitTable table({.keys_max = 2, .permits_max = 1'000'000});
  for (uint64_t key = 1; key <= 2; ++key)
    EXPECT_EQ(table.Do(KeyOf(key), Acquire(key), kStart).outcome, Outcome::kGranted);
  EXPECT_EQ(table.Do(KeyOf(3), Acquire(3), kStart).outcome, Outcome::kNoRoom);
  EXPECT_EQ(table.refused(), 1);
  // A key that is there is answered, whatever is full.
  EXPECT_EQ(table.Do(KeyOf(1), Acquire(9), kStart).outcome, Outcome::kFull);
  table.Do(KeyOf(1), Release(1), kStart);
  EXPECT_EQ(table.Do(KeyOf(3), Acquire(3), kStart).outcome, Outcome::kGranted);
}

TEST(PermitTable, RefusesMorePermitsThanItMayKeepUntilSomeHaveEnded) {
  PermitTable table({.keys_max = 100, .permits_max = 3});
  for (uint64_t id = 1; id <= 3; ++id)
    EXPECT_EQ(table.Do(KeyOf(1), Acquire(id, 10), kStart).outcome, Outcome::kGranted);
  EXPECT_EQ(table.Do(KeyOf(1), Acquire(4, 10), kStart).outcome, Outcome::kNoRoom);
  EXPECT_EQ(table.Do(KeyOf(2), Acquire(4, 10), kStart + 29s).outcome, Outcome::kNoRoom);
  const Answer answer = table.Do(KeyOf(2), Acquire(4, 10), kStart + 30s);
  EXPECT_EQ(answer.outcome, Outcome::kGranted);
  EXPECT_EQ(answer.expired, 3);
}

TEST(PermitTable, OneKeyMayHoldAllPermitsOfTheTable) {
  PermitTable table({.keys_max = 2, .permits_max = 1000});
  for (uint64_t id = 1; id <= 1000; ++id)
    ASSERT_EQ(table.Do(KeyOf(1), Acquire(id, 10'000), kStart).outcome, Outcome::kGranted) << id;
  const Answer answer = table.Do(KeyOf(1), Acquire(1001, 10'000), kStart);
  EXPECT_EQ(answer.outcome, Outcome::kNoRoom);
  EXPECT_EQ(answer.in_flight, 1000u);
  EXPECT_EQ(table.refused(), 1u);
  table.Do(KeyOf(1), Release(1), kStart);
  EXPECT_EQ(table.Do(KeyOf(2), Acquire(1), kStart).outcome, Outcome::kGranted);
}

TEST(PermitTable, AFullTableRenewsWhatIsHeldAndSaysWhatIsFullByItself) {
  PermitTable table({.keys_max = 10, .permits_max = 2});
  table.Do(KeyOf(1), Acquire(1, 2), kStart);
  table.Do(KeyOf(1), Acquire(2, 2), kStart);
  EXPECT_EQ(table.Do(KeyOf(1), Acquire(3, 2), kStart + 20s).outcome, Outcome::kFull);
  EXPECT_EQ(table.Do(KeyOf(1), Acquire(1, 2), kStart + 20s).outcome, Outcome::kHeld);
  EXPECT_EQ(table.CountAt(kStart + 40s), 1u);
  EXPECT_EQ(table.refused(), 0u);
}

TEST(PermitTable, TheBoundsHoldForAllThreadsTogether) {
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kEach = 500;
  PermitTable table({.keys_max = 1000, .permits_max = 100});
  std::atomic<uint64_t> granted{0};
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint64_t id = 0; id < kEach; ++id) {
        if (table.Do(KeyOf(thread), Acquire(id, 10'000), kStart).passes()) granted.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(granted, 100u);
  EXPECT_EQ(table.CountAt(kStart), 100u);
  EXPECT_EQ(table.refused(), kThreads * kEach - 100u);
}

TEST(PermitTable, AFloodOfKeysThatAreNeverReleasedFindsRoomAgainWhenTheyEnd) {
  constexpr uint64_t kKeys = 100;
  PermitTable table({.keys_max = kKeys, .permits_max = 1'000'000});
  Instant now = kStart;
  uint64_t granted = 0;
  for (uint64_t key = 0; key < 50 * kKeys; ++key, now += 100ms)
    granted += table.Do(KeyOf(key), Acquire(key), now).passes() ? 1u : 0u;
  // 300 keys come within a ttl, and 100 have room.
  EXPECT_GE(granted, 50 * kKeys / 4);
  EXPECT_EQ(granted + table.refused(), 50 * kKeys);
  EXPECT_LE(table.CountAt(now), kKeys);
}

TEST(PermitTable, ThreadsNeverHoldMoreThanTheLimit) {
  PermitTable table;
  constexpr uint32_t kMax = 3;
  std::atomic<uint32_t> held{0};
  std::atomic<bool> exceeded{false};
  std::atomic<uint64_t> grants{0};
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint64_t i = 0; i < 20'000; ++i) {
        const uint64_t id = thread << 32 | i;
        if (!table.Do(KeyOf(1), Acquire(id, kMax), kStart).passes()) continue;
        if (held.fetch_add(1) >= kMax) exceeded = true;
        grants.fetch_add(1);
        held.fetch_sub(1);
        if (table.Do(KeyOf(1), Release(id), kStart).outcome != Outcome::kReleased) exceeded = true;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(exceeded);
  EXPECT_GT(grants, 0u);
  EXPECT_EQ(table.CountAt(kStart), 0u);
}

}  // namespace permit_table_test
}  // namespace headgate::permit
