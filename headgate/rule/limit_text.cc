#include "headgate/rule/limit_text.h"

#include <cstdint>

#include <fmt/format.h>

#include "headgate/rule/block_words.h"
#include "headgate/rule/duration.h"
#include "headgate/rule/given_limit.h"
#include "headgate/rule/size_cost.h"

namespace headgate::rule {

using algorithm::Algorithm;
using algorithm::Align;
using algorithm::LimitSpec;

std::string Describe(const algorithm::Limit& limit) {
  const LimitSpec& spec = limit.spec();
  std::string out = fmt::format("{} per ", spec.requests);
  if (spec.align == Align::kCalendarWeek) {
    out += "calendar week";
  } else if (spec.align == Align::kCalendarMonth) {
    out += "calendar month";
  } else if (spec.align == Align::kCalendarYear) {
    out += "calendar year";
  } else if (spec.align == Align::kCalendarDay) {
    out += "calendar day";
  } else {
    out += FormatDuration(spec.period);
  }
  if (!spec.zone.is_utc()) out += fmt::format(" in {}", spec.zone.name());
  const algorithm::Traits& traits = algorithm::TraitsOf(spec.algorithm);
  out += fmt::format(", {}", traits.word);
  if (spec.burst) out += fmt::format(", burst {}", *spec.burst);
  if (traits.queues) out += ", queue";
  if (spec.align == Align::kFirstHit) out += ", align first_hit";
  if (spec.count_denied) out += ", count_denied";
  if (spec.overdraw) out += ", overdraw";
  if (!spec.block.empty()) out += ", block " + Describe(spec.block);
  return out;
}

std::string Describe(const RuleLimit& limit) {
  std::string out = Describe(limit.limit);
  if (limit.cost) out += ", " + Describe(*limit.cost);
  if (limit.given != nullptr) out += ", " + Describe(*limit.given);
  return out;
}

std::string DescribeReach(const Rollout& rollout) {
  if (rollout.shadow()) return "in shadow";
  constexpr uint32_t kPpmPerPercent = 10'000;
  std::string places = fmt::format(".{:04}", rollout.keys_ppm % kPpmPerPercent);
  places.resize(places.find_last_not_of("0.") + 1);
  return fmt::format("for {}{} % of the keys", rollout.keys_ppm / kPpmPerPercent, places);
}

}  // namespace headgate::rule
