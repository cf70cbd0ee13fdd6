#include "headgate/base/heavy_hitters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "headgate/base/random.h"

namespace headgate::base {
namespace heavy_hitters_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using By = HeavyHitters::By;

constexpr HashSecret kSecret{};

void Add(HeavyHitters& hitters, const std::string& key, const HeavyHitters::Request& request = {}) {
  hitters.Add(HashBytes(kSecret, KeyKind::kRaw, key), key, request);
}

std::vector<std::string> KeysOf(const std::vector<HeavyHitters::Hitter>& hitters) {
  std::vector<std::string> keys;
  for (const HeavyHitters::Hitter& hitter : hitters) keys.push_back(hitter.key);
  return keys;
}

TEST(HeavyHitters, CountsExactlyWhileEachKeyHasACounter) {
  HeavyHitters hitters({.counters = 3});
  EXPECT_THAT(hitters.Top(10), IsEmpty());
  for (const char* key : {"a", "b", "a", "c", "a", "b", "a"}) Add(hitters, key);
  Add(hitters, "c", {.allowed = false, .cost = 7});
  Add(hitters, "c", {.allowed = false, .cost = 0});
  EXPECT_THAT(hitters.Top(2),
              ElementsAre(HeavyHitters::Hitter{.key = "a", .count = 4, .allowed = 4, .cost = 4},
                          HeavyHitters::Hitter{
                              .key = "c", .count = 3, .allowed = 1, .denied = 2, .cost = 8}));
  EXPECT_EQ(hitters.total(), 9u);
}

TEST(HeavyHitters, ANewKeyTakesOverTheSmallestCounterAndItsCountAsError) {
  HeavyHitters hitters({.counters = 2});
  for (const char* key : {"a", "a", "a", "b", "b"}) Add(hitters, key);
  Add(hitters, "c", {.cost = 5});
  EXPECT_THAT(hitters.Top(2),
              ElementsAre(HeavyHitters::Hitter{.key = "a", .count = 3, .allowed = 3, .cost = 3},
                          HeavyHitters::Hitter{
                              .key = "c", .count = 3, .error = 2, .allowed = 1, .cost = 5}));
}

TEST(HeavyHitters, ASumThatDoesNotFitStaysAtTheLargestNumber) {
  HeavyHitters hitters({.by = By::kCost, .counters = 2});
  for (const uint64_t cost : {uint64_t{INT64_MAX}, uint64_t{INT64_MAX}, uint64_t{2}, uint64_t{1}})
    Add(hitters, "dear", {.allowed = false, .cost = cost});
  Add(hitters, "cheap");
  const HeavyHitters::Hitter dear{
      .key = "dear", .count = UINT64_MAX, .denied = 4, .cost = UINT64_MAX};
  const HeavyHitters::Hitter cheap{.key = "cheap", .count = 1, .allowed = 1, .cost = 1};
  EXPECT_THAT(hitters.Top(3), ElementsAre(dear, cheap));
  EXPECT_EQ(hitters.total(), UINT64_MAX);
  HeavyHitters other({.by = By::kCost, .counters = 2});
  Add(other, "dear", {.allowed = false, .cost = 5});
  other.Merge(hitters);
  EXPECT_EQ(KeysOf(other.Top(3)), (std::vector<std::string>{"dear", "cheap"}));
  EXPECT_EQ(other.Top(1).front().count, UINT64_MAX);
}

TEST(HeavyHitters, RanksByDenialsOrByCost) {
  HeavyHitters denials({.by = By::kDenials, .counters = 2});
  HeavyHitters costs({.by = By::kCost, .counters = 2});
  for (HeavyHitters* hitters : {&denials, &costs}) {
    for (int i = 0; i < 9; ++i) Add(*hitters, "often");
    Add(*hitters, "denied", {.allowed = false, .cost = 2});
    Add(*hitters, "dear", {.cost = 50});
  }
  EXPECT_THAT(KeysOf(denials.Top(3)), ElementsAre("denied"));
  EXPECT_EQ(denials.total(), 1u);
  EXPECT_EQ(costs.Top(1).front().key, "dear");
}

TEST(HeavyHitters, ShowsHashesOnRequestAndABoundedPartOfALongKey) {
  HeavyHitters hashed({.keys = HeavyHitters::Keys::kHashed});
  Add(hashed, "secret");
  EXPECT_THAT(hashed.Top(1).front().key, ::testing::MatchesRegex("[0-9a-f]{16}"));

  HeavyHitters clear({});
  const std::string longest(HeavyHitters::kKeyBytesMax, 'x');
  Add(clear, longest + "1");
  Add(clear, longest + "2");
  EXPECT_THAT(KeysOf(clear.Top(5)), ElementsAre(longest, longest)) << "but counted apart";
}

TEST(HeavyHitters, IsEmptyAfterClear) {
  HeavyHitters hitters({.counters = 2});
  Add(hitters, "a");
  hitters.Clear();
  EXPECT_THAT(hitters.Top(5), IsEmpty());
  EXPECT_EQ(hitters.total(), 0u);
  Add(hitters, "b");
  EXPECT_THAT(KeysOf(hitters.Top(5)), ElementsAre("b"));
}

// The bounds of the head comment, against exact counts.
using Exact = std::map<std::string, uint64_t>;

void CheckBounds(const HeavyHitters& hitters, size_t counters, Exact exact) {
  uint64_t total = 0;
  for (const auto& [key, weight] : exact) total += weight;
  ASSERT_EQ(hitters.total(), total);
  ASSERT_EQ(hitters.error_most(), total / counters);
  const auto top = hitters.Top(counters + 5);
  ASSERT_LE(top.size(), counters);
  ASSERT_TRUE(std::is_sorted(top.begin(), top.end(),
                             [](const auto& a, const auto& b) { return a.count > b.count; }));
  Exact shown;
  for (const HeavyHitters::Hitter& hitter : top) {
    shown[hitter.key] = hitter.count;
    ASSERT_LE(hitter.error, hitters.error_most());
    ASSERT_LE(exact[hitter.key], hitter.count);
    ASSERT_GE(exact[hitter.key], hitter.count - hitter.error);
  }
  ASSERT_EQ(shown.size(), top.size()) << "a key is shown twice";
  for (const auto& [key, weight] : exact) {
    if (weight > total / counters) {
      ASSERT_TRUE(shown.contains(key)) << key;
    }
  }
}

// Adds `count` requests of few heavy keys among many that come once, with weights.
void AddAny(Random& random, By by, int count, HeavyHitters& hitters, Exact& exact) {
  for (int i = 0; i < count; ++i) {
    // Few keys come often: the square of an even number is small more often than large.
    const uint64_t key = random.Below(40) * random.Below(40);
    const HeavyHitters::Request request{.allowed = random.Below(3) != 0, .cost = random.Below(5)};
    const uint64_t weight = by == By::kRequests  ? 1
                            : by == By::kDenials ? (request.allowed ? 0u : 1u)
                                                 : request.cost;
    exact[std::to_string(key)] += weight;
    Add(hitters, std::to_string(key), request);
  }
}

TEST(HeavyHitters, KeepsItsBoundsForAnyStream) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const size_t counters = 1 + random.Below(60);
    const auto by = static_cast<By>(random.Below(3));
    HeavyHitters hitters({.by = by, .counters = counters});
    Exact exact;
    AddAny(random, by, 5000, hitters, exact);
    CheckBounds(hitters, counters, exact);
    if (HasFatalFailure()) return;
  }
}

// The parts of several threads and windows, some of them empty or short. The merged one continues
// to count.
TEST(HeavyHitters, KeepsItsBoundsWhenPartsAreMerged) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const size_t counters = 1 + random.Below(60);
    const auto by = static_cast<By>(random.Below(3));
    HeavyHitters merged({.by = by, .counters = counters});
    Exact exact;
    for (uint64_t part = random.Below(8); part <= 8; ++part) {
      HeavyHitters one({.by = by, .counters = counters});
      AddAny(random, by, static_cast<int>(random.Below(2) * random.Below(3000)), one, exact);
      merged.Merge(one);
      CheckBounds(merged, counters, exact);
      AddAny(random, by, static_cast<int>(random.Below(50)), merged, exact);
      CheckBounds(merged, counters, exact);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(HeavyHitters, AddsUpAllOfAKeyWhenPartsAreMerged) {
  HeavyHitters merged({.counters = 2});
  HeavyHitters other({.counters = 2});
  for (const char* key : {"a", "a", "a", "b"}) Add(merged, key);
  Add(other, "a", {.allowed = false, .cost = 7, .label = 3});
  merged.Merge(other);
  EXPECT_THAT(merged.Top(1),
              ElementsAre(HeavyHitters::Hitter{
                  .key = "a", .count = 4, .allowed = 3, .denied = 1, .cost = 10, .label = 3}));
  other.Clear();
  for (const char* key : {"c", "c", "d"}) Add(other, key);
  merged.Merge(other);
  // Each may have come to the other part as often as its smallest counter: 1.
  EXPECT_THAT(merged.Top(2),
              ElementsAre(HeavyHitters::Hitter{.key = "a",
                                               .count = 5,
                                               .error = 1,
                                               .allowed = 3,
                                               .denied = 1,
                                               .cost = 10,
                                               .label = 3},
                          HeavyHitters::Hitter{
                              .key = "c", .count = 3, .error = 1, .allowed = 2, .cost = 2}));
}

}  // namespace heavy_hitters_test
}  // namespace headgate::base
