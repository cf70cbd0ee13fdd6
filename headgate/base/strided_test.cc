#include "headgate/base/strided.h"

#include <gtest/gtest.h>

#include <vector>

namespace headgate::base {
namespace strided_test {

struct Pair {
  char name;
  int number;
};

TEST(Strided, SeesOneMemberOfEachStruct) {
  std::vector<Pair> pairs{{'a', 1}, {'b', 2}, {'c', 3}};
  const auto numbers = Strided<int>::Of(std::span(pairs), &Pair::number);
  ASSERT_EQ(numbers.size(), 3u);
  EXPECT_EQ(numbers[0], 1);
  EXPECT_EQ(numbers[2], 3);
  numbers[1] = 20;
  EXPECT_EQ(pairs[1].number, 20);
  EXPECT_EQ(pairs[1].name, 'b');
}

TEST(Strided, SeesTheElementsOfAVectorAndOfOneObject) {
  const std::vector<int> numbers{1, 2, 3};
  const Strided<const int> all = numbers;
  EXPECT_EQ(all.size(), 3u);
  EXPECT_EQ(all[2], 3);
  int one = 7;
  const Strided<int> single{&one, 1};
  EXPECT_EQ(single[0], 7);
}

TEST(Strided, APartKeepsTheStride) {
  std::vector<Pair> pairs{{'a', 1}, {'b', 2}, {'c', 3}, {'d', 4}};
  const auto part = Strided<const int>::Of(std::span(pairs), &Pair::number).subspan(1, 2);
  ASSERT_EQ(part.size(), 2u);
  EXPECT_EQ(part[0], 2);
  EXPECT_EQ(part[1], 3);
}

TEST(Strided, ASpanOfNothingIsEmpty) {
  std::vector<Pair> none;
  EXPECT_TRUE(Strided<int>::Of(std::span(none), &Pair::number).empty());
  EXPECT_TRUE(Strided<int>().empty());
}

}  // namespace strided_test
}  // namespace headgate::base
