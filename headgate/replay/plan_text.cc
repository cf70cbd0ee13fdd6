#include "headgate/replay/plan_text.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <string_view>

#include "headgate/rule/quote.h"

namespace headgate::replay {
namespace {

constexpr size_t kRows = 20;
constexpr size_t kNameWidth = 32;

double Percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string Row(std::string_view name, const ClientPlan& plan) {
  return fmt::format("{:<32} {:>10} {:>10} {:>7.1f} % {:>14}\n", name, plan.requests, plan.refused,
                     Percent(plan.refused, plan.requests),
                     plan.most_in_cycle == 0 ? std::string() : std::to_string(plan.most_in_cycle));
}

std::string NameOf(const ClientPlan& plan) {
  if (plan.name.empty()) return "(no client)";
  return rule::Printable(plan.name).substr(0, kNameWidth);
}

std::string TableOf(const SharePlan& plan) {
  std::string text = fmt::format("{:<32} {:>10} {:>10} {:>9} {:>14}\n", "client", "requests",
                                 "refused", "", "most in cycle");
  ClientPlan others = plan.others;
  for (size_t i = 0; i < plan.clients.size(); ++i) {
    if (i < kRows) {
      text += Row(NameOf(plan.clients[i]), plan.clients[i]);
      continue;
    }
    others.requests += plan.clients[i].requests;
    others.refused += plan.clients[i].refused;
  }
  if (others.requests > 0) text += Row("all others", others);
  return text;
}

std::string SummaryOf(const SharePlan& plan, base::Duration cycle) {
  const auto seconds = [](base::Duration time) {
    return std::chrono::duration<double>(time).count();
  };
  std::string text = fmt::format(
      "\n{} of {} requests refused ({:.1f} %), in {} of {} cycles with requests; the log covers "
      "{:.0f} s\n",
      plan.refused, plan.requests, Percent(plan.refused, plan.requests), plan.cycles_refusing,
      plan.cycles, seconds(plan.last - plan.first));
  text += fmt::format(
      "the busiest cycle of {:g} s had {} requests; 99 % of the cycles had at most {}\n",
      seconds(cycle), plan.most_in_cycle, plan.capacity_for_most);
  return text;
}

}  // namespace

std::string TextOf(const SharePlan& plan, base::Duration cycle) {
  return TableOf(plan) + SummaryOf(plan, cycle);
}

}  // namespace headgate::replay
