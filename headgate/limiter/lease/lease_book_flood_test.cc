// The table of keys that a book follows, under floods: keys of one class keep their places whatever
// another brings.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "headgate/limiter/lease/lease_book.h"

namespace headgate::limiter::lease {
namespace lease_book_flood_test {

using algorithm::Limit;
using base::BootTime;
using base::Duration;
using base::Hash128;
using store::LimitHandle;
using store::LimitOwner;
using namespace std::chrono_literals;

constexpr uint32_t kPlaces = 1024;
constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // spreads numbers as hashes are

class LeaseBookFloodTest : public ::testing::Test {
 protected:
  LimitHandle OfRule(const std::string& rule) {
    return *limits.Intern(*Limit::Make({.requests = 100, .period = 1h}), 0, LimitOwner::Rule(rule));
  }
  LimitHandle OfClients(uint64_t requests) {
    return *limits.Intern(
        *Limit::Make({.requests = requests, .period = std::chrono::seconds(4'000'000'000)}));
  }

  static Hash128 Key(uint64_t family, uint64_t number) {
    return {(number + 1) * kGolden >> 20 ^ family << 40, (number + 1) * kGolden ^ family};
  }
  void Ask(const Hash128& key, const LimitHandle& limit) {
    book.Take(
        key, *limit, 1, [](std::string& name) { name = "k"; }, now);
  }
  bool IsFollowed(const Hash128& key) const { return book.Held(key) != nullptr; }

  BootTime now{1'000'000'000'000};
  store::LimitTable limits;
  LeaseBook book{{.node = 1, .keys_max = kPlaces}};
};

TEST_F(LeaseBookFloodTest, KeysThatClientsBringPushOutEachOther) {
  const LimitHandle rule = OfRule("held");
  for (const uint64_t times : {2u, 10u, 100u}) {
    now = now + 10s;
    for (uint64_t key = 0; key < kPlaces / 8; ++key) Ask(Key(1, key), rule);
    // All within a second, and each later than those of the rule.
    for (uint64_t key = 0; key < times * kPlaces; ++key) {
      now = now + Duration(1s).count() / static_cast<int64_t>(times * kPlaces) * 1ns;
      Ask(Key(1 + times, key), OfClients(10 + key % 500));
    }
    uint64_t followed = 0;
    for (uint64_t key = 0; key < kPlaces / 8; ++key) followed += IsFollowed(Key(1, key)) ? 1u : 0u;
    EXPECT_EQ(followed, kPlaces / 8) << times;
    EXPECT_GT(book.keys_evicted(), (times - 1) * kPlaces / 2);
  }
}

TEST_F(LeaseBookFloodTest, KeysOfOneRulePushOutEachOtherAndNotAnothers) {
  const LimitHandle rule = OfRule("held"), other = OfRule("flooded");
  for (uint64_t key = 0; key < kPlaces / 8; ++key) Ask(Key(1, key), rule);
  for (uint64_t key = 0; key < 100 * kPlaces; ++key) Ask(Key(2, key), other);
  for (uint64_t key = 0; key < kPlaces / 8; ++key) EXPECT_TRUE(IsFollowed(Key(1, key))) << key;
  EXPECT_EQ(rule->owner->lease_records.load() + other->owner->lease_records.load(),
            book.keys_followed());
}

TEST_F(LeaseBookFloodTest, IdleKeysMakeWayEvenInASmallClass) {
  const LimitHandle rule = OfRule("idle"), other = OfRule("busy");
  for (uint64_t key = 0; key < kPlaces / 8; ++key) Ask(Key(1, key), rule);
  now = now + 10s;
  for (uint64_t key = 0; key < 10 * kPlaces; ++key) Ask(Key(2, key), other);
  EXPECT_EQ(rule->owner->lease_records.load(), 0u);
  EXPECT_EQ(other->owner->lease_records.load(), kPlaces);
}

TEST_F(LeaseBookFloodTest, AKeyWhoseLimitIsAnothersIsCountedThere) {
  const LimitHandle a = OfRule("a"), b = OfRule("b");
  Ask(Key(1, 1), a);
  Ask(Key(1, 1), b);
  EXPECT_EQ(a->owner->lease_records.load(), 0u);
  EXPECT_EQ(b->owner->lease_records.load(), 1u);
}

}  // namespace lease_book_flood_test
}  // namespace headgate::limiter::lease
