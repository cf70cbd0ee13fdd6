#include "headgate/permit/permit_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace headgate::permit {
namespace {

using base::Hash128;
using base::Instant;
using namespace std::chrono_literals;
using Kind = Ask::Kind;
using Outcome = Answer::Outcome;

constexpr Instant kStart = Instant::FromNanos(1'790'000'000'000'000'000);

// Keys of one shard, so that the bounds of a shard are those of the test.
Hash128 KeyOf(uint64_t number) { return {.low = number * 0x9e3779b97f4a7c15, .high = 64}; }
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
  PermitTable table({.keys_max = 2 * 64, .permits_max = 1'000'000});
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
  PermitTable table({.keys_max = 100 * 64, .permits_max = 3 * 64});
  for (uint64_t id = 1; id <= 3; ++id)
    EXPECT_EQ(table.Do(KeyOf(1), Acquire(id, 10), kStart).outcome, Outcome::kGranted);
  EXPECT_EQ(table.Do(KeyOf(1), Acquire(4, 10), kStart).outcome, Outcome::kNoRoom);
  EXPECT_EQ(table.Do(KeyOf(2), Acquire(4, 10), kStart + 29s).outcome, Outcome::kNoRoom);
  const Answer answer = table.Do(KeyOf(2), Acquire(4, 10), kStart + 30s);
  EXPECT_EQ(answer.outcome, Outcome::kGranted);
  EXPECT_EQ(answer.expired, 3);
}

TEST(PermitTable, AFloodOfKeysThatAreNeverReleasedFindsRoomAgainWhenTheyEnd) {
  constexpr uint64_t kKeys = 100;
  PermitTable table({.keys_max = kKeys * 64, .permits_max = 1'000'000});
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

}  // namespace
}  // namespace headgate::permit
