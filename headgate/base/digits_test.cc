#include "headgate/base/digits.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace headgate::base {
namespace digits_test {

// All numbers whose upper or lower four digits are zero, and some others: the halves do not depend
// on each other.
std::vector<uint32_t> Numbers() {
  std::vector<uint32_t> numbers;
  for (uint32_t half = 0; half < 10'000; ++half) {
    numbers.push_back(half);
    numbers.push_back(half * 10'000);
    numbers.push_back(half * 10'000 + (half * 7'919) % 10'000);
  }
  for (uint32_t power = 1; power < kShortNumberMax; power *= 10) {
    numbers.push_back(power - 1);
    numbers.push_back(power + 1);
  }
  numbers.push_back(kShortNumberMax);
  return numbers;
}

TEST(ShortNumber, IsWrittenAsTheLibraryWritesIt) {
  for (const uint32_t number : Numbers()) {
    std::array<char, kShortNumberDigits + 1> text;
    text.fill('x');
    const auto size = static_cast<size_t>(WriteShortNumber(text.data(), number) - text.data());
    ASSERT_EQ(std::string_view(text.data(), size), std::to_string(number));
    ASSERT_EQ(text.back(), 'x') << number;
  }
}

TEST(AppendNumber, AppendsNumbersOfAllLengths) {
  std::string text = "n=";
  std::string expected = text;
  for (uint64_t number = 1; number < UINT64_MAX / 10; number *= 10) {
    for (const uint64_t near : {number - 1, number, number + 1}) {
      AppendNumber(near, text);
      expected += std::to_string(near);
    }
  }
  AppendNumber(UINT64_MAX, text);
  EXPECT_EQ(text, expected + std::to_string(UINT64_MAX));
}

// Any bytes: whoever uses the word decides which texts are numbers.
TEST(WordOfDigits, HoldsTheTextBehindZeros) {
  for (const std::string_view text :
       {"7", "19", "254", "1000", "60000", "999999", "1000001", "12345678", "-5", "\xff", "a\0b"}) {
    const std::string padded = std::string(kShortNumberDigits - text.size(), '0') += text;
    uint64_t expected;
    std::memcpy(&expected, padded.data(), sizeof(expected));
    EXPECT_EQ(WordOfDigits(text), expected) << text;
    EXPECT_EQ(WordOfDigits(padded), expected) << text;
  }
}

// The bytes around the text belong to others: the address sanitizer watches over this.
TEST(WordOfDigits, ReadsNothingBesideTheText) {
  for (size_t size = 1; size <= kShortNumberDigits; ++size) {
    const std::vector<char> text(size, '0');
    EXPECT_EQ(WordOfDigits({text.data(), size}), 0x3030303030303030u);
  }
}

}  // namespace digits_test
}  // namespace headgate::base
