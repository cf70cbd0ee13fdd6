// Exact decimal numbers of 64 bits: units · 10^-scale. 0.1 + 0.2 is 0.3, and nothing is ever
// rounded: a number that does not fit is refused.
//
//   12.5   →  units 125, scale 1
//   -3     →  units -3, scale 0
//
// Sums are computed in units of 10^-17 in 128 bits, which cannot overflow: each operand is
// below 2^63 · 10^17 < 2^120.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/base/wide.h"

namespace headgate::base {

struct Decimal {
  // The most decimals, as many as Redis prints.
  static constexpr uint32_t kScaleMax = 17;

  int64_t units = 0;
  // The least possible one: 0, or `units` is not a multiple of 10.
  uint32_t scale = 0;

  static constexpr Decimal Integer(int64_t number) { return {.units = number, .scale = 0}; }
  static constexpr Decimal Min() { return Integer(std::numeric_limits<int64_t>::min()); }
  static constexpr Decimal Max() { return Integer(std::numeric_limits<int64_t>::max()); }
  // Empty if the number needs more than 64 bits.
  static std::optional<Decimal> FromWide(int128 wide);

  bool is_integer() const { return scale == 0; }
  // In units of 10^-17.
  int128 wide() const;

  bool operator==(const Decimal&) const = default;
};

enum class DecimalProblem : uint8_t { kNone, kNotANumber, kDoesNotFit };

// Reads digits with an optional sign, point and exponent: `-2`, `.5`, `1.`, `2.5e-3`. The number is
// returned in `number`.
DecimalProblem ParseDecimal(std::string_view text, Decimal& number);

// Reads an integer as Redis does: no plus sign, no leading zeros, no `-0`.
std::optional<int64_t> ParseStrictInteger(std::string_view text);

// Without an exponent, with no more digits than needed: `-0.05`, `3`.
std::string ToText(const Decimal& number);

}  // namespace headgate::base
