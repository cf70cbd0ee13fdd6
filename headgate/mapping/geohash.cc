#include "headgate/mapping/geohash.h"

#include <algorithm>

#include "headgate/base/text.h"

namespace headgate::mapping {
namespace {

constexpr int64_t kUnitsPerDegree = 1'000'000'000;
constexpr int kFractionDigits = 9;

// The cell of `value` in [0, range) when the range is cut into 2^bits parts. 2^30 · 360·10^9 is
// below 2^69, hence 128 bits.
uint64_t CellOf(int64_t value, int64_t range, uint32_t bits) {
  const auto cell = (static_cast<unsigned __int128>(value) << bits) / static_cast<uint64_t>(range);
  return std::min(static_cast<uint64_t>(cell), (uint64_t{1} << bits) - 1);
}

}  // namespace

std::optional<int64_t> ParseDegrees(std::string_view text, int64_t bound) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const size_t point = std::min(text.find('.'), text.size());
  const std::string_view whole = text.substr(0, point);
  const std::string_view fraction = text.substr(std::min(point + 1, text.size()));
  const auto digits = [](std::string_view part) {
    return std::all_of(part.begin(), part.end(), base::IsDigit);
  };
  if (whole.empty() || whole.size() > 3 || fraction.size() > 40 || !digits(whole) ||
      !digits(fraction) || (point < text.size() && fraction.empty())) {
    return std::nullopt;
  }
  int64_t units = 0;
  for (const char c : whole) units = units * 10 + (c - '0');
  bool more = false;  // digits beyond the ninth
  for (int i = 0; i < kFractionDigits; ++i) {
    const auto at = static_cast<size_t>(i);
    units = units * 10 + (at < fraction.size() ? fraction[at] - '0' : 0);
  }
  for (size_t i = kFractionDigits; i < fraction.size(); ++i) more = more || fraction[i] != '0';
  if (units > bound * kUnitsPerDegree || (units == bound * kUnitsPerDegree && more))
    return std::nullopt;
  return negative ? -units - (more ? 1 : 0) : units;
}

void AppendGeohash(int64_t latitude, int64_t longitude, uint32_t characters, std::string& out) {
  constexpr int64_t kHalfTurn = 180 * kUnitsPerDegree;
  constexpr int64_t kQuarterTurn = 90 * kUnitsPerDegree;
  if (longitude == kHalfTurn) longitude = -kHalfTurn;
  const uint32_t bits = 5 * characters;
  const uint32_t longitude_bits = (bits + 1) / 2;
  const uint32_t latitude_bits = bits / 2;
  const uint64_t x = CellOf(longitude + kHalfTurn, 2 * kHalfTurn, longitude_bits);
  const uint64_t y = CellOf(latitude + kQuarterTurn, 2 * kQuarterTurn, latitude_bits);
  uint32_t character = 0;
  for (uint32_t i = 0; i < bits; ++i) {
    const uint64_t bit =
        i % 2 == 0 ? x >> (longitude_bits - 1 - i / 2) & 1 : y >> (latitude_bits - 1 - i / 2) & 1;
    character = character << 1 | static_cast<uint32_t>(bit);
    if (i % 5 == 4) {
      out.push_back(kGeohashAlphabet[character & 31]);
      character = 0;
    }
  }
}

}  // namespace headgate::mapping
