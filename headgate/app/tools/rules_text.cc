#include "headgate/app/tools/rules_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "headgate/rule/quote.h"

namespace headgate::app {
namespace {

using nlohmann::json;

// A list that Headgate's answers have.
const json& ListIn(const json& answer, const char* name) {
  const json& list = answer.at(name);
  (void)list.get_ref<const json::array_t&>();
  return list;
}

std::string ProblemLine(const json& problem) {
  const int line = problem.value("line", 0);
  return fmt::format("             {}{}{}\n", rule::Printable(problem.value("place", "")),
                     line > 0 ? fmt::format(":{}: ", line) : ": ",
                     rule::Printable(problem.value("message", "")));
}

// Foreign text must not move a terminal's cursor.
std::string PrintableLines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    out.append(rule::Printable(line)).append("\n");
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return out;
}

// "fixed window".
std::string AlgorithmOf(const json& limit) {
  std::string name = limit.value("algorithm", "");
  std::replace(name.begin(), name.end(), '_', ' ');
  return rule::Printable(name);
}

// The algorithms of a rule's limits and of its roll-out's.
void AddAlgorithms(const json& rule, std::set<std::string>& algorithms) {
  if (!rule.is_object()) return;
  for (const json& limit : rule.value("limits", json::array()))
    algorithms.insert(AlgorithmOf(limit));
  AddAlgorithms(rule.value("rollout", json()), algorithms);
}

std::string LimitsOf(const json& rule, bool with_algorithm) {
  if (!rule.is_object()) return "none";
  std::string text;
  for (const json& limit : rule.value("limits", json::array())) {
    text += fmt::format("{}{} per {}{}", text.empty() ? "" : " and ", limit.value("requests", 0),
                        rule::Printable(limit.value("period", limit.value("align", ""))),
                        with_algorithm ? " " + AlgorithmOf(limit) : "");
  }
  if (const json limit = rule.value("concurrency", json()); limit.is_object()) {
    text += fmt::format("{}{} in flight (ttl {})", text.empty() ? "" : " and ",
                        limit.value("requests", 0), rule::Printable(limit.value("ttl", "")));
  }
  if (text.empty()) text = "unlimited";
  const json& rollout = rule.value("rollout", json());
  if (!rollout.is_object()) return text;
  const std::string reach = rollout.contains("percent")
                                ? fmt::format("{} % of the keys", rollout["percent"].get<double>())
                                : std::string("in shadow");
  return fmt::format("{} ({}: {})", text, reach,
                     LimitsOf({{"limits", rollout.at("limits")}}, with_algorithm));
}

std::string Differences(const json& answer) {
  std::string text;
  for (const json& change : ListIn(answer, "changes")) {
    const json before = change.value("before", json());
    const json after = change.value("after", json());
    // One algorithm for all is not worth saying.
    std::set<std::string> algorithms;
    AddAlgorithms(before, algorithms);
    AddAlgorithms(after, algorithms);
    const bool differ = algorithms.size() > 1;
    text += fmt::format("{:<8} {} {}: {} -> {}", change.value("change", ""),
                        rule::Printable(change.value("domain", "")),
                        rule::Printable(change.value("rule", "")), LimitsOf(before, differ),
                        LimitsOf(after, differ));
    if (const json live = change.value("live_keys", json()); live.is_number())
      text += fmt::format("  ({} live keys)", live.get<uint64_t>());
    text += '\n';
  }
  for (const json& problem : answer.value("waits_for", json::array())) {
    text += fmt::format("waits for: {}: {}\n", rule::Printable(problem.value("place", "")),
                        rule::Printable(problem.value("message", "")));
  }
  return text;
}

}  // namespace

std::string DocumentsText(std::string_view body) {
  const json answer = json::parse(body);
  std::string text;
  for (const json& document : ListIn(answer, "documents")) {
    const size_t problems = ListIn(document, "problems").size();
    text += fmt::format("{:<12} {}{}\n",
                        document.at("in_force").get<bool>() ? "in force" : "not in force",
                        rule::Printable(document.at("name").get<std::string>()),
                        problems == 0   ? ""
                        : problems == 1 ? "  (1 problem)"
                                        : fmt::format("  ({} problems)", problems));
    for (const json& problem : document["problems"]) text += ProblemLine(problem);
  }
  for (const json& problem : ListIn(answer, "problems")) text += ProblemLine(problem);
  return text;
}

std::string HistoryText(std::string_view body) {
  const json answer = json::parse(body);
  std::string text;
  for (const json& change : ListIn(answer, "changes")) {
    const std::string user = change.value("user", "");
    text += fmt::format("{}  {}  {} {} by {}{}\n", rule::Printable(change.value("id", "")),
                        rule::Printable(change.value("time", "")),
                        rule::Printable(change.value("action", "")),
                        rule::Printable(change.value("document", "")),
                        rule::Printable(user.empty() ? change.value("address", "") : user),
                        change.value("outcome", "") == "done"
                            ? ""
                            : fmt::format("  ({})", rule::Printable(change.value("outcome", ""))));
  }
  return text;
}

ShownChange ShowChange(std::string_view body) {
  const json answer = json::parse(body);
  const std::string diff = answer.at("diff").get<std::string>();
  ShownChange shown{.changes = !diff.empty(), .text = {}};
  if (shown.changes)
    shown.text = rule::Printable(answer.value("document", "")) + "\n" + PrintableLines(diff);
  shown.text += Differences(answer);
  if (!shown.changes) shown.text += "nothing changes\n";
  return shown;
}

}  // namespace headgate::app
