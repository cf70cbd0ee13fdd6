#include "headgate/rule/read/limit_choices.h"

#include <algorithm>

#include "headgate/base/text.h"

namespace headgate::rule::read {

namespace {

constexpr uint32_t kMillion = 1'000'000;

// A decimal number in units of 1 / `one`, which is a power of ten. Above 0, and at most a million
// units.
std::optional<uint32_t> PartByText(std::string_view text, uint32_t one) {
  const size_t point = std::min(text.find('.'), text.size());
  const std::string_view whole = text.substr(0, point);
  std::string_view places = text.substr(std::min(point + 1, text.size()));
  if (whole.empty() || whole.size() > 3 || (whole.size() > 1 && whole[0] == '0')) return {};
  if (point < text.size() && places.empty()) return {};
  uint32_t units = 0;
  for (const char digit : whole) {
    if (!base::IsDigit(digit)) return {};
    units = units * 10 + static_cast<uint32_t>(digit - '0') * one;
  }
  for (uint32_t place = one / 10; !places.empty(); places.remove_prefix(1), place /= 10) {
    if (place == 0 || !base::IsDigit(places[0])) return {};
    units += place * static_cast<uint32_t>(places[0] - '0');
  }
  if (units == 0 || units > kMillion) return {};
  return units;
}

}  // namespace

std::optional<uint32_t> ShareByText(std::string_view text) { return PartByText(text, kMillion); }

std::optional<uint32_t> PercentByText(std::string_view text) {
  return PartByText(text, kMillion / 100);
}

}  // namespace headgate::rule::read
