#include "headgate/rule/given_limit.h"

#include <fmt/format.h>

#include <algorithm>

#include "headgate/base/text.h"
#include "headgate/base/wide.h"
#include "headgate/rule/problem.h"
#include "headgate/rule/quote.h"

namespace headgate::rule {
namespace {

// Absent if the text is not a whole number; a number beyond the largest if it is larger. Some JSON
// libraries write whole numbers as 1000.0.
std::optional<uint64_t> ParseNumber(std::string_view text) {
  const size_t point = text.find('.');
  if (point != text.npos && point + 1 < text.size() &&
      text.find_first_not_of('0', point + 1) == text.npos) {
    text = text.substr(0, point);
  }
  if (text.empty() || (text.size() > 1 && text[0] == '0') ||
      !std::all_of(text.begin(), text.end(), base::IsDigit)) {
    return std::nullopt;
  }
  uint64_t number = 0;
  for (const char c : text) {
    if (number > UINT32_MAX) break;
    number = number * 10 + static_cast<uint64_t>(c - '0');
  }
  return number;
}

}  // namespace

GivenChoice ChooseGiven(const GivenLimits& limits, std::string_view text) {
  const auto plan = std::lower_bound(
      limits.plans.begin(), limits.plans.end(), text,
      [](const GivenLimits::Plan& p, std::string_view name) { return p.name < name; });
  if (plan != limits.plans.end() && plan->name == text)
    return {.given = Given::kPlan, .plan = static_cast<size_t>(plan - limits.plans.begin())};
  const std::optional<uint64_t> number = ParseNumber(text);
  if (!number || !limits.max) return {};
  if (*number > *limits.max) return {.given = Given::kCapped, .number = *limits.max};
  return {.given = Given::kNumber, .number = static_cast<uint32_t>(*number)};
}

algorithm::LimitSpec WithRequests(const algorithm::LimitSpec& own, uint64_t requests) {
  algorithm::LimitSpec spec = own;
  spec.requests = requests;
  if (own.burst && *own.burst > 0 && own.requests > 0) {
    const base::uint128 scaled = base::uint128{*own.burst} * requests;
    const base::uint128 burst = (scaled + own.requests - 1) / own.requests;
    spec.burst =
        std::max<uint64_t>(1, static_cast<uint64_t>(std::min<base::uint128>(burst, UINT64_MAX)));
  }
  return spec;
}

bool AreAlike(const std::shared_ptr<const GivenLimits>& a,
              const std::shared_ptr<const GivenLimits>& b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->max == b->max &&
         std::equal(a->plans.begin(), a->plans.end(), b->plans.begin(), b->plans.end(),
                    [](const GivenLimits::Plan& one, const GivenLimits::Plan& other) {
                      return one.name == other.name && one.limit.spec() == other.limit.spec();
                    });
}

std::string Describe(const GivenLimits& limits) {
  std::string out;
  if (limits.max) out += fmt::format("max {}", *limits.max);
  for (const GivenLimits::Plan& plan : limits.plans) {
    const bool is_first = &plan == &limits.plans.front();
    out += fmt::format("{}{} {}",
                       !is_first    ? ", "
                       : limits.max ? ", plans "
                                    : "plans ",
                       Shown(plan.name), plan.limit.spec().requests);
  }
  return out;
}

}  // namespace headgate::rule
