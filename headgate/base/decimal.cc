#include "headgate/base/decimal.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "headgate/base/text.h"

namespace headgate::base {
namespace {

constexpr size_t kDigitsMax = 19;  // of 64 bits

constexpr auto kPowers = [] {
  std::array<int128, kDigitsMax + 1> powers{1};
  for (size_t i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * 10;
  return powers;
}();

// Takes the sign off the front of `text`.
bool TakeSign(std::string_view& text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  return negative;
}

std::string_view TakeDigits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), IsDigit);
  const std::string_view digits = text.substr(0, static_cast<size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits;
}

// The exponent behind a mantissa, clamped to ±10^9. Empty if it is malformed.
std::optional<int64_t> TakeExponent(std::string_view& text) {
  constexpr int64_t kMost = 1'000'000'000;
  if (text.empty() || (text[0] != 'e' && text[0] != 'E')) return 0;
  text.remove_prefix(1);
  const bool negative = TakeSign(text);
  const std::string_view digits = TakeDigits(text);
  if (digits.empty()) return std::nullopt;
  int64_t exponent = 0;
  for (const char c : digits) exponent = std::min(kMost, exponent * 10 + (c - '0'));
  return negative ? -exponent : exponent;
}

}  // namespace

int128 Decimal::wide() const { return units * kPowers[kScaleMax - scale]; }

std::optional<Decimal> Decimal::FromWide(int128 wide) {
  uint32_t scale = kScaleMax;
  while (scale > 0 && wide % 10 == 0) {
    wide /= 10;
    --scale;
  }
  if (wide < Min().units || wide > Max().units) return std::nullopt;
  return Decimal{.units = static_cast<int64_t>(wide), .scale = scale};
}

DecimalProblem ParseDecimal(std::string_view text, Decimal& number) {
  const bool negative = TakeSign(text);
  const std::string_view whole = TakeDigits(text);
  std::string_view fraction;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    fraction = TakeDigits(text);
  }
  const std::optional<int64_t> exponent = TakeExponent(text);
  if (!text.empty() || !exponent || (whole.empty() && fraction.empty()))
    return DecimalProblem::kNotANumber;

  // The significant digits, and the place of the last one: 0 is that of the units.
  int128 digits = 0;
  size_t count = 0;
  int64_t zeros = 0;
  int64_t place = *exponent + static_cast<int64_t>(whole.size());
  for (const std::string_view part : {whole, fraction}) {
    for (const char c : part) {
      if (c == '0') {
        ++zeros;
        continue;
      }
      place -= zeros + 1;
      // Zeros at the front are not significant.
      if (count > 0) count += static_cast<size_t>(zeros);
      if (++count > kDigitsMax) return DecimalProblem::kDoesNotFit;
      digits = digits * kPowers[static_cast<size_t>(digits == 0 ? 0 : zeros + 1)] + (c - '0');
      zeros = 0;
    }
  }
  if (count == 0) {
    number = {};
    return DecimalProblem::kNone;
  }
  constexpr auto kScaleMost = static_cast<int64_t>(Decimal::kScaleMax);
  if (place < -kScaleMost || place > static_cast<int64_t>(kDigitsMax))
    return DecimalProblem::kDoesNotFit;
  const int128 magnitude = digits * kPowers[static_cast<size_t>(std::max<int64_t>(place, 0))];
  const int128 units = negative ? -magnitude : magnitude;
  if (units < Decimal::Min().units || units > Decimal::Max().units)
    return DecimalProblem::kDoesNotFit;
  number = {.units = static_cast<int64_t>(units),
            .scale = static_cast<uint32_t>(std::max<int64_t>(-place, 0))};
  return DecimalProblem::kNone;
}

std::optional<int64_t> ParseStrictInteger(std::string_view text) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || parsed != end) return std::nullopt;
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  const bool canonical = digits[0] != '0' || text == "0";
  return canonical ? std::optional(number) : std::nullopt;
}

std::string ToText(const Decimal& number) {
  const bool negative = number.units < 0;
  const auto bits = static_cast<uint64_t>(number.units);
  std::string digits = std::to_string(negative ? ~bits + 1 : bits);
  if (number.scale > 0) {
    if (digits.size() <= number.scale) digits.insert(0, number.scale + 1 - digits.size(), '0');
    digits.insert(digits.size() - number.scale, 1, '.');
  }
  return negative ? "-" + digits : digits;
}

}  // namespace headgate::base
