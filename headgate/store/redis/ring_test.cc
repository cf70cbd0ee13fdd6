#include "headgate/store/redis/ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace headgate::store::redis {
namespace ring_test {

constexpr int kKeys = 50'000;

std::vector<std::string> Names(size_t count) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back("10.0.0." + std::to_string(i + 1) + ":6379");
  return names;
}

std::string Key(int i) { return "hg:{edge}" + std::to_string(i); }

class RingOf : public ::testing::TestWithParam<size_t> {};

TEST_P(RingOf, SpreadsTheKeysEvenlyWithinATenth) {
  const size_t count = GetParam();
  const Ring ring(Names(count));
  std::map<uint32_t, int> keys;
  for (int i = 0; i < kKeys; ++i) ++keys[ring.Find(Key(i))];
  const int even = kKeys / static_cast<int>(count);
  EXPECT_EQ(keys.size(), count);
  for (const auto& [server, number] : keys) {
    EXPECT_GE(number, even * 9 / 10) << server;
    EXPECT_LE(number, even * 11 / 10) << server;
  }
}

TEST_P(RingOf, MovesFewKeysWhenAServerLeavesAndOnlyItsOwn) {
  const std::vector<std::string> names = Names(GetParam());
  const Ring before(names);
  for (size_t gone = 0; gone < names.size(); ++gone) {
    std::vector<std::string> left = names;
    left.erase(left.begin() + static_cast<ptrdiff_t>(gone));
    const Ring after(left);
    int moved = 0;
    for (int i = 0; i < kKeys; i += 5) {
      const uint32_t was = before.Find(Key(i));
      if (left[after.Find(Key(i))] == names[was]) continue;
      ASSERT_EQ(was, gone) << "a key of a server that stayed";
      ++moved;
    }
    EXPECT_LE(moved, kKeys / 5 * 13 / 10 / static_cast<int>(names.size()));
  }
}

TEST_P(RingOf, DoesNotDependOnTheOrderOfTheServers) {
  const std::vector<std::string> names = Names(GetParam());
  const std::vector<std::string> reversed(names.rbegin(), names.rend());
  const Ring one(names);
  const Ring other(reversed);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(names[one.Find(Key(i))], reversed[other.Find(Key(i))]);
}

INSTANTIATE_TEST_SUITE_P(Sizes, RingOf, ::testing::Values(2, 3, 5, 8, 12));

// Two versions that run side by side must agree on this.
TEST(Ring, StaysAsItIs) {
  const Ring ring(Names(3));
  std::string owners;
  for (int i = 0; i < 24; ++i) owners += std::to_string(ring.Find(Key(i)));
  EXPECT_EQ(owners, "221221200202002000020020");
}

}  // namespace ring_test
}  // namespace headgate::store::redis
