#include "headgate/limiter/lease/lease_books.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace headgate::limiter::lease {
namespace lease_books_test {

using base::BootTime;
using base::Duration;
using base::Hash128;
using namespace std::chrono_literals;

constexpr BootTime kStart{10'000'000'000};

class LeaseBooksTest : public ::testing::Test {
 protected:
  static Hash128 KeyOf(uint64_t i) {
    return {i * 0x9e3779b97f4a7c15, (i + 1) * 0xc2b2ae3d27d4eb4f};
  }

  // A loop's work for one request, with a store that grants everything. kAwait: the store has
  // decided it.
  LeaseVerdict Request(uint64_t key, BootTime now, uint64_t remaining = 1'000'000) {
    store::LeaseAsk asked;
    const auto keep = [&](const LeaseAction& action) { asked = action.ask; };
    const auto name = [](std::string& out) { out += "k"; };
    LeaseVerdict verdict = books.Take(KeyOf(key), *limit, 1, name, now, keep);
    while (true) {
      EXPECT_EQ(verdict.action, nullptr);
      const bool sends = asked.id.number != 0;
      if (sends) Grant(KeyOf(key), asked, now, remaining);
      if (sends || verdict.kind != LeaseVerdict::Kind::kAwait) return verdict;
      // Another loop's message is under way.
      verdict = books.TakeAgain(KeyOf(key), *limit, 1, name, now, keep);
    }
  }
  void Grant(const Hash128& key, const store::LeaseAsk& asked, BootTime now, uint64_t remaining) {
    ++asks;
    store::SharedAnswer answer;
    answer.decision = {.allowed = true, .limit = 1'000'000, .remaining = remaining};
    answer.grant = {.granted = asked.want, .ttl = 2s};
    books.OnGrant(key, asked.id.number, answer, now, [](const LeaseAction&) {});
  }

  store::LimitTable limits;
  store::LimitHandle limit =
      *limits.Intern(*algorithm::Limit::Make({.requests = 1'000'000, .period = 1s}));
  LeaseBooks books{{.node = 1, .keys_max = 4096}};
  std::atomic<int> asks{0};
};

// Whatever the threads do at the same time: what is spent was granted, and each allowed request was
// spent once.
TEST_F(LeaseBooksTest, ThreadsSpendFromTheSameLeases) {
  constexpr int kThreads = 4, kRequests = 20'000, kKeys = 7;
  std::atomic<uint64_t> allowed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRequests; ++i) {
        const BootTime now = kStart + i * 100us;
        if (Request(static_cast<uint64_t>(i % kKeys), now).kind == LeaseVerdict::Kind::kAllowed)
          ++allowed;
        if (i % 1000 == 0) {
          std::vector<std::pair<Hash128, store::LeaseAsk>> sent;
          const auto keep = [&](const LeaseAction& action) {
            sent.emplace_back(action.key, action.ask);
          };
          while (!books.OnTime(static_cast<uint32_t>(t), kThreads, now, keep)) {
          }
          for (const auto& [key, asked] : sent) Grant(key, asked, now, 1'000'000);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const LeaseTotals totals = books.totals();
  EXPECT_EQ(totals.spent, allowed.load());
  EXPECT_GT(allowed.load(), uint64_t{kThreads} * kRequests / 2);
  EXPECT_EQ(totals.granted, totals.spent + totals.returned + totals.expired_unspent + totals.held);
}

// A lease that one loop was granted serves all of them.
TEST_F(LeaseBooksTest, ALeaseIsForAllLoops) {
  for (int i = 0; i < 4; ++i) Request(1, kStart);
  ASSERT_EQ(asks, 1);
  std::thread other([&] { EXPECT_EQ(Request(1, kStart).kind, LeaseVerdict::Kind::kAllowed); });
  other.join();
}

// Each loop looks after a part of the keys, together after all.
TEST_F(LeaseBooksTest, TheLoopsTogetherReturnWhatIsIdle) {
  constexpr uint32_t kLoops = 3;
  constexpr uint64_t kKeys = 500;
  for (uint64_t key = 0; key < kKeys; ++key) {
    for (int i = 0; i < 6; ++i) Request(key, kStart, /*remaining=*/10);
  }
  ASSERT_GT(books.totals().held, 0u);
  uint64_t returned = 0;
  for (uint32_t loop = 0; loop < kLoops; ++loop) {
    ASSERT_LT(books.next_wake(loop, kLoops), kStart + 2s);
    uint64_t by_loop = 0;
    for (Duration at = 100ms; at < 2s; at += 100ms) {
      std::vector<std::pair<Hash128, uint64_t>> sent;
      const auto keep = [&](const LeaseAction& action) {
        sent.emplace_back(action.key, action.ask.id.number);
      };
      while (!books.OnTime(loop, kLoops, kStart + at, keep)) {
      }
      by_loop += sent.size();
      store::SharedAnswer answer;
      answer.decision.remaining = 10;
      for (const auto& [key, number] : sent)
        books.OnGrant(key, number, answer, kStart + at, [](const LeaseAction&) {});
    }
    EXPECT_GT(by_loop, kKeys / kLoops / 2);
    returned += by_loop;
  }
  EXPECT_GE(returned, kKeys);
  EXPECT_EQ(books.totals().held, 0u);
}

// One that has many keys to look after lets others in between.
TEST_F(LeaseBooksTest, AFewKeysAreLookedAtUnderOneLock) {
  LeaseBooks one({.node = 1, .keys_max = 4096}, /*parts=*/1);
  for (uint64_t key = 0; key < 100; ++key) {
    for (int i = 0; i < 4; ++i) {
      uint64_t asked = 0;
      one.Take(
          KeyOf(key), *limit, 1, [](std::string& name) { name += "k"; }, kStart,
          [&](const LeaseAction& action) { asked = action.ask.id.number; });
      store::SharedAnswer answer;
      answer.decision = {.allowed = true, .limit = 1'000'000, .remaining = 10};
      answer.grant = {.granted = 9, .ttl = 2s};
      if (asked != 0) one.OnGrant(KeyOf(key), asked, answer, kStart, [](const LeaseAction&) {});
    }
  }
  size_t sent = 0;
  EXPECT_FALSE(one.OnTime(0, 1, kStart + 3s / 2, [&](const LeaseAction&) { ++sent; }));
  EXPECT_LT(sent, 100u);
  EXPECT_GT(sent, 0u);
}

TEST_F(LeaseBooksTest, AMessageOutlivesTheRecordThatItWasMadeOf) {
  LeaseMessage message;
  for (int i = 0; i < 4; ++i) {
    books.Take(
        KeyOf(1), *limit, 1, [](std::string& name) { name += "the name"; }, kStart,
        [&](const LeaseAction& action) { message.Keep(action); });
  }
  ASSERT_GT(message.ask.id.number, 0u);
  EXPECT_EQ(message.name, "the name");
  EXPECT_EQ(message.limit.get(), limit.get());
  EXPECT_EQ(message.ask.id.node, 1u);
  EXPECT_TRUE(message.ask.reports.empty() || message.ask.reports.data() == message.reports.data());
}

}  // namespace lease_books_test
}  // namespace headgate::limiter::lease
