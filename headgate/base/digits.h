// Decimal digits. Numbers of up to eight digits, which most commands and replies consist of, are
// handled at once in a 64-bit word: one digit in each byte, the first in the lowest. One digit at a
// time takes several times as long.
#pragma once

#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>

namespace headgate::base {

inline constexpr size_t kShortNumberDigits = 8;
inline constexpr uint32_t kShortNumberMax = 99'999'999;

static_assert(std::endian::native == std::endian::little);

// The word of 1 to 8 characters, padded with '0' at the front. So texts that differ only in leading
// zeros have the same word.
inline uint64_t WordOfDigits(std::string_view text) {
  constexpr uint64_t kZeros = 0x3030303030303030;
  const char* const begin = text.data();
  const size_t size = text.size();
  const size_t missing_bits = 8 * (kShortNumberDigits - size);
  uint64_t word = 0;
  if (size >= 4) {
    uint32_t first;
    uint32_t last;
    std::memcpy(&first, begin, sizeof(first));
    std::memcpy(&last, begin + size - sizeof(last), sizeof(last));
    word = uint64_t{last} << 32 | uint64_t{first} << missing_bits;
  } else {
    const auto at = [begin](size_t i) { return uint64_t{static_cast<unsigned char>(begin[i])}; };
    word = at(0) << missing_bits | at(size / 2) << (missing_bits + 8 * (size / 2)) |
           at(size - 1) << 56;
  }
  // In two steps, because a shift by 64 is undefined.
  return word | (kZeros >> (8 * (size - 1))) >> 8;
}

// Writes a number of at most kShortNumberMax at `at`, which has room for eight bytes, whatever the
// number; returns the end of its digits. The word of digits is split into halves until each byte
// holds one. (Mula, "SSE: conversion integers to decimal representation", 2011, in ordinary
// registers.)
inline char* WriteShortNumber(char* at, uint32_t number) {
  // Each division is a multiplication by a rounded reciprocal, exact for these ranges.
  const uint64_t fours = number / 10'000 | uint64_t{number % 10'000} << 32;
  const uint64_t hundreds = (fours * 10'486 >> 20) & 0x0000'007f'0000'007f;
  const uint64_t pairs = hundreds | (fours - 100 * hundreds) << 16;
  const uint64_t tens = (pairs * 103 >> 10) & 0x000f'000f'000f'000f;
  const uint64_t digits = tens | (pairs - 10 * tens) << 8;
  const int zeros = number == 0 ? 7 : std::countr_zero(digits) / 8;
  const uint64_t text = (digits | 0x3030303030303030) >> (8 * zeros);
  std::memcpy(at, &text, sizeof(text));
  return at + kShortNumberDigits - zeros;
}

// Appends the digits of any number.
inline void AppendNumber(uint64_t number, std::string& out) {
  char text[20];
  char* const end = number <= kShortNumberMax
                        ? WriteShortNumber(text, static_cast<uint32_t>(number))
                        : std::to_chars(std::begin(text), std::end(text), number).ptr;
  out.append(text, static_cast<size_t>(end - text));
}

}  // namespace headgate::base
