#include "headgate/rule/duration.h"

#include <array>
#include <optional>

#include <fmt/format.h>

#include "headgate/base/text.h"
#include "headgate/base/wide.h"
#include "headgate/rule/quote.h"

namespace headgate::rule {
namespace {

constexpr uint64_t kMaxNs = static_cast<uint64_t>(base::kDurationMax.count());
constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kMinuteNs = 60 * kSecondNs;
constexpr uint64_t kHourNs = 60 * kMinuteNs;
constexpr uint64_t kDayNs = 24 * kHourNs;

struct UnitOfTime {
  std::string_view name;
  uint64_t ns;
};
// From the longest to the shortest.
constexpr std::array<UnitOfTime, 7> kTimeUnits{{{"d", kDayNs},
                                                {"h", kHourNs},
                                                {"m", kMinuteNs},
                                                {"s", kSecondNs},
                                                {"ms", 1'000'000},
                                                {"us", 1'000},
                                                {"ns", 1}}};

// A day is 2^16·3^3·5^11 ns, so a fraction with more than 16 places (without trailing zeros) is
// never a whole number of ns.
constexpr size_t kPlacesMax = 16;

std::string_view TakeDigits(std::string_view& text) {
  size_t count = 0;
  while (count < text.size() && base::IsDigit(text[count])) ++count;
  const std::string_view digits = text.substr(0, count);
  text.remove_prefix(count);
  return digits;
}

std::string_view TakeWord(std::string_view& text) {
  size_t count = 0;
  while (count < text.size() && !base::IsDigit(text[count])) ++count;
  const std::string_view word = text.substr(0, count);
  text.remove_prefix(count);
  return word;
}

std::optional<uint64_t> NanosecondsOf(std::string_view name) {
  for (const auto& [known, ns] : kTimeUnits) {
    if (known == name) return ns;
  }
  return std::nullopt;
}

enum class Sum { kExact, kTooLong, kTooFine };

// Adds whole.fraction units to `total`, which never exceeds kMaxNs.
Sum AddTerm(std::string_view whole, std::string_view fraction, uint64_t unit, uint64_t& total) {
  uint64_t count = 0;
  for (const char c : whole) {
    if (count > kMaxNs / 10) return Sum::kTooLong;  // keeps the next line below 2^63
    count = count * 10 + static_cast<uint64_t>(c - '0');
  }
  if (count > (kMaxNs - total) / unit) return Sum::kTooLong;
  total += count * unit;

  while (!fraction.empty() && fraction.back() == '0') fraction.remove_suffix(1);
  if (fraction.size() > kPlacesMax) return Sum::kTooFine;
  uint64_t numerator = 0;  // below 10^16, like the denominator
  uint64_t denominator = 1;
  for (const char c : fraction) {
    numerator = numerator * 10 + static_cast<uint64_t>(c - '0');
    denominator *= 10;
  }
  const base::uint128 product = base::WideMul(numerator, unit);
  if (product % denominator != 0) return Sum::kTooFine;
  const auto part = static_cast<uint64_t>(product / denominator);
  if (part > kMaxNs - total) return Sum::kTooLong;
  total += part;
  return Sum::kExact;
}

absl::Status Refuse(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format("{} is not a duration: {}", Quote(text), why));
}

}  // namespace

absl::StatusOr<base::Duration> ParseDuration(std::string_view text) {
  if (text.empty()) return Refuse(text, "write numbers with a unit, such as 20s or 1h30m");
  uint64_t total = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view whole = TakeDigits(rest);
    if (whole.empty())
      return Refuse(text, "a number must come before each unit, as in 20s or 1h30m");
    std::string_view fraction;
    if (!rest.empty() && rest[0] == '.') {
      rest.remove_prefix(1);
      fraction = TakeDigits(rest);
      if (fraction.empty()) return Refuse(text, "digits must follow the decimal point");
    }
    const std::string_view word = TakeWord(rest);
    if (word.empty())
      return Refuse(text, "the unit is missing; use ns, us, ms, s, m, h or d, as in 20s");
    const std::optional<uint64_t> unit = NanosecondsOf(word);
    if (!unit) {
      return Refuse(
          text, fmt::format("unknown unit {}; the units are ns, us, ms, s, m, h, d", Quote(word)));
    }
    switch (AddTerm(whole, fraction, *unit, total)) {
      case Sum::kExact:
        break;
      case Sum::kTooLong:
        return Refuse(text, "it is longer than 146 years");
      case Sum::kTooFine:
        return Refuse(text, "the duration is finer than a nanosecond");
    }
  }
  return base::Duration(static_cast<int64_t>(total));
}

std::string FormatDuration(base::Duration duration) {
  const int64_t count = duration.count();
  if (count == 0) return "0s";
  std::string out = count < 0 ? "-" : "";
  // Negate as unsigned, because the lowest number has no positive counterpart.
  uint64_t rest =
      count < 0 ? uint64_t{0} - static_cast<uint64_t>(count) : static_cast<uint64_t>(count);
  for (const auto& [name, unit] : kTimeUnits) {
    if (unit > kSecondNs) {
      if (rest >= unit) out += fmt::format("{}{}", rest / unit, name);
      rest %= unit;
      continue;
    }
    // Print the rest as one decimal number: in seconds after larger units, otherwise in the largest
    // unit that it reaches.
    if (rest == 0) break;
    const bool after_larger = out.size() > 1;
    if (rest < unit && !(after_larger && unit == kSecondNs)) continue;
    out += fmt::format("{}", rest / unit);
    rest %= unit;
    if (rest > 0) {
      std::string digits;
      for (uint64_t place = unit / 10; rest > 0; place /= 10) {
        digits += static_cast<char>('0' + rest / place);
        rest %= place;
      }
      out += "." + digits;
    }
    out += name;
    break;
  }
  return out;
}

}  // namespace headgate::rule
