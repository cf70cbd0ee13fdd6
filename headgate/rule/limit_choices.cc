#include "headgate/rule/limit_choices.h"

#include <algorithm>

#include "headgate/base/text.h"

namespace headgate::rule {

std::optional<uint32_t> ShareByText(std::string_view text) {
  const size_t point = std::min(text.find('.'), text.size());
  const std::string_view whole = text.substr(0, point);
  std::string_view places = text.substr(std::min(point + 1, text.size()));
  uint32_t millionths = whole == "1" ? 1'000'000 : 0;
  bool good = whole == "0" || whole == "1";
  good = good && (point == text.size() || (!places.empty() && places.size() <= 6));
  uint32_t place = 100'000;
  for (; good && !places.empty(); places.remove_prefix(1), place /= 10) {
    good = base::IsDigit(places[0]);
    millionths += place * static_cast<uint32_t>(places[0] - '0');
  }
  if (good && millionths > 0 && millionths <= 1'000'000) return millionths;
  return std::nullopt;
}

}  // namespace headgate::rule
