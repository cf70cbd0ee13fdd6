#include "headgate/rule/size_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "headgate/base/text.h"
#include "headgate/rule/quote.h"

namespace headgate::rule {
namespace {

struct SizeUnit {
  std::string_view name;
  uint32_t shift;
};
constexpr std::array<SizeUnit, 5> kSizeUnits{
    {{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"B", 0}}};

}  // namespace

std::string_view Name(SizeCost::Of of) {
  switch (of) {
    case SizeCost::Of::kRequestBytes:
      return "request_bytes";
    case SizeCost::Of::kResponseBytes:
      return "response_bytes";
    case SizeCost::Of::kCountedAnswers:
    case SizeCost::Of::kSent:
      break;
  }
  return "answers";
}

absl::StatusOr<uint64_t> ParseSize(std::string_view text) {
  const auto wrong = [&] {
    return absl::InvalidArgumentError(fmt::format(
        "{} is not a size: write a whole number from 1 with B, KiB, MiB, GiB or TiB, such as 64KiB",
        Quote(text)));
  };
  size_t digits = 0;
  uint64_t number = 0;
  while (digits < text.size() && base::IsDigit(text[digits])) {
    number = number * 10 + static_cast<uint64_t>(text[digits++] - '0');
    if (number > kSizeMax) break;
  }
  if (digits == 0 || number == 0) return wrong();
  uint32_t shift = 0;
  if (const std::string_view unit = text.substr(digits); number <= kSizeMax && !unit.empty()) {
    const auto* const found = std::find_if(kSizeUnits.begin(), kSizeUnits.end(),
                                           [&](const SizeUnit& u) { return u.name == unit; });
    if (found == kSizeUnits.end()) return wrong();
    shift = found->shift;
  }
  if (number > kSizeMax >> shift) {
    return absl::InvalidArgumentError(
        fmt::format("{} is more than {}", Quote(text), FormatSize(kSizeMax)));
  }
  return number << shift;
}

std::string FormatSize(uint64_t bytes) {
  for (const auto& [name, shift] : kSizeUnits) {
    if (bytes >> shift != 0 && (bytes >> shift) << shift == bytes)
      return fmt::format("{}{}", bytes >> shift, name);
  }
  return "0B";
}

std::string Describe(const SizeCost& cost) {
  if (cost.of == SizeCost::Of::kCountedAnswers) return "counts " + Describe(cost.counted);
  return fmt::format("costs 1 for each {} of {}, reserve {}", FormatSize(cost.per_bytes),
                     Name(cost.of), FormatSize(cost.reserve_bytes));
}

}  // namespace headgate::rule
