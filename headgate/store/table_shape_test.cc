#include "headgate/store/table_shape.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace headgate::store {
namespace table_shape_test {

TEST(TableShape, ATableOfFewSegmentsHasAllOfThemFromTheBeginning) {
  for (const uint64_t segments : {1u, 2u, 19u, 127u}) {
    const TableShape shape(segments);
    EXPECT_EQ(shape.count(), segments);
    EXPECT_EQ(shape.count_max(), segments);
    EXPECT_FALSE(shape.grows());
  }
}

TEST(TableShape, ALargerOneStartsSmallAndRoundsUpByA64thAtMost) {
  for (const uint64_t segments : {128u, 129u, 1000u, 19'419u, 185'186u, 1'272'582'903u}) {
    const TableShape shape(segments);
    EXPECT_GE(shape.count(), 64u) << segments;
    EXPECT_LE(shape.count(), 128u) << segments;
    EXPECT_GE(shape.count_max(), segments);
    EXPECT_LE(shape.count_max(), segments + segments / 64) << segments;
  }
}

TEST(TableShape, AKeyLeavesASegmentOnlyWhenItIsSplitAndOnlyForItsTwoParts) {
  TableShape shape(1000);
  std::mt19937_64 random(1);
  std::vector<uint64_t> keys(20'000), places(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) places[i] = shape.SegmentOf(keys[i] = random());
  while (shape.grows()) {
    const uint64_t split = shape.next_to_split();
    shape.SplitNext();
    for (size_t i = 0; i < keys.size(); ++i) {
      const uint64_t now = shape.SegmentOf(keys[i]);
      ASSERT_LT(now, shape.count());
      if (places[i] == split) {
        ASSERT_EQ(now / 2, split);
      } else {
        ASSERT_EQ(now, places[i]);
      }
      places[i] = now;
    }
  }
  EXPECT_EQ(shape.count(), 1000u);
  // 20 keys are expected in each segment; 60 are nine standard deviations more.
  std::vector<int> keys_in(shape.count());
  for (const uint64_t now : places) ASSERT_LE(++keys_in[now], 60);
}

TEST(TableShape, TheTwoSegmentsOfAKeyStayTwoHoweverFewThereAre) {
  for (const uint64_t segments : {2u, 3u, 19u, 128u, 1000u}) {
    TableShape shape(segments);
    std::mt19937_64 random(2);
    std::vector<uint64_t> keys{0, ~uint64_t{0}, uint64_t{1} << 63, 0x5555'5555'5555'5555};
    while (keys.size() < 5000) keys.push_back(random());
    while (true) {
      for (const uint64_t key : keys)
        ASSERT_NE(shape.SegmentOf(key), shape.SegmentOf(shape.SecondBits(key))) << std::hex << key;
      if (!shape.grows()) break;
      shape.SplitNext();
    }
  }
}

}  // namespace table_shape_test
}  // namespace headgate::store
