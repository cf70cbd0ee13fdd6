#include "headgate/base/wide.h"

#include <array>
#include <random>

namespace headgate::base {
namespace wide_test {

constexpr uint64_t kMax = ~uint64_t{0};

// Values at which an estimated quotient is most likely to be wrong: near powers of two and at both
// ends of the range.
std::vector<uint64_t> EdgeValues() {
  std::vector<uint64_t> values{
      0, 1, 2, 3, 5, 7, 10, 1000, 1'000'000'000, 60'000'000'000, kMax, kMax - 1, kMax / 3};
  for (int bit = 2; bit < 64; ++bit) {
    const uint64_t power = uint64_t{1} << bit;
    values.insert(values.end(), {power - 1, power, power + 1});
  }
  return values;
}

TEST(Divider, DividesAsTheProcessorDoesAtEveryEdge) {
  const std::vector<uint64_t> values = EdgeValues();
  for (const uint64_t divisor : values) {
    if (divisor == 0) continue;
    const Divider divider(divisor);
    EXPECT_EQ(divider.divisor(), divisor);
    for (const uint64_t x : values) {
      ASSERT_EQ(divider.Quotient(x), x / divisor) << x << " / " << divisor;
      ASSERT_EQ(divider.Remainder(x), x % divisor) << x << " % " << divisor;
      // Also check values near the multiples.
      const uint64_t multiple = x / divisor * divisor;
      ASSERT_EQ(divider.Quotient(multiple), multiple / divisor);
      ASSERT_EQ(divider.Quotient(multiple - 1), (multiple - 1) / divisor);
    }
  }
}

TEST(Divider, DividesAsTheProcessorDoesAtRandom) {
  std::mt19937_64 random(20'261'121);
  for (int i = 0; i < 1'000'000; ++i) {
    const uint64_t divisor = std::max<uint64_t>(1, random() >> random() % 64);
    const uint64_t x = random() >> random() % 64;
    ASSERT_EQ(Divider(divisor).Quotient(x), x / divisor) << x << " / " << divisor;
  }
}

TEST(Divider, ADefaultConstructedOneDividesByOne) {
  for (const uint64_t x : {uint64_t{0}, uint64_t{1}, kMax}) EXPECT_EQ(Divider().Quotient(x), x);
}

TEST(Wide, ProductsDoNotLoseTheirUpperHalf) {
  EXPECT_EQ(WideMul(kMax, kMax) >> 64, kMax - 1);
  EXPECT_EQ(static_cast<uint64_t>(WideMul(kMax, kMax)), 1u);
  EXPECT_EQ(MulHigh(uint64_t{1} << 63, 6), 3u);
  EXPECT_EQ(MulHigh(kMax, 1), 0u);
}

TEST(Wide, CeilDivRoundsUp) {
  EXPECT_TRUE(CeilDiv(0, 7) == 0);
  EXPECT_TRUE(CeilDiv(7, 7) == 1);
  EXPECT_TRUE(CeilDiv(8, 7) == 2);
  EXPECT_TRUE(CeilDiv(WideMul(kMax, kMax), kMax) == kMax);
}

}  // namespace wide_test
}  // namespace headgate::base
