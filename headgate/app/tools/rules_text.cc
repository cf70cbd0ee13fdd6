#include "headgate/app/tools/rules_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "headgate/rule/quote.h"
#include "headgate/wire/json.h"

namespace headgate::app {
namespace {

using wire::Json;

// Whether it is a list of objects.
bool IsList(const Json& list) {
  return list.is_array() && std::ranges::all_of(list.items(), &Json::is_object);
}

// Empty if there is no text of this name.
std::string PrintableIn(const Json& object, std::string_view name) {
  return rule::Printable(object[name].text());
}

std::string ProblemLine(const Json& problem) {
  const int64_t line = problem["line"].whole();
  return fmt::format("             {}{}{}\n", PrintableIn(problem, "place"),
                     line > 0 ? fmt::format(":{}: ", line) : ": ", PrintableIn(problem, "message"));
}

// "fixed window".
std::string AlgorithmOf(const Json& limit) {
  std::string name(limit["algorithm"].text());
  std::replace(name.begin(), name.end(), '_', ' ');
  return rule::Printable(name);
}

// The algorithms of a rule's limits and of its roll-out's.
void AddAlgorithms(const Json& rule, std::set<std::string>& algorithms) {
  for (const Json& limit : rule["limits"].items()) algorithms.insert(AlgorithmOf(limit));
  if (rule["rollout"].is_object()) AddAlgorithms(rule["rollout"], algorithms);
}

// " burst 20 queue": all members of the limit except its rate. `count_denied` is left out, because
// nearly all limits in Envoy's words have it.
std::string RestOfLimit(const Json& limit) {
  constexpr std::array<std::string_view, 4> kShownBefore = {"algorithm", "requests", "period",
                                                            "count_denied"};
  std::string text;
  for (const auto& [name, value] : limit.members()) {
    if (std::ranges::find(kShownBefore, name) != kShownBefore.end()) continue;
    if (name == "burst" && value.count() == limit["requests"].count()) continue;
    if (name == "align") {
      if (limit["period"].is_string() && value.text() != "epoch")
        text += " " + rule::Printable(value.text());
    } else {
      text += " " + rule::Printable(name);
      if (!value.truth()) text += " " + rule::Printable(value.Text());
    }
  }
  return text;
}

// "10 per 1m and 3 in flight (ttl 30s)". A roll-out is not part of the text.
std::string OwnLimitsOf(const Json& rule, bool with_algorithm) {
  std::string text;
  for (const Json& limit : rule["limits"].items()) {
    text += fmt::format("{}{} per {}{}{}", text.empty() ? "" : " and ", limit["requests"].count(),
                        PrintableIn(limit, limit["period"].is_string() ? "period" : "align"),
                        RestOfLimit(limit), with_algorithm ? " " + AlgorithmOf(limit) : "");
  }
  if (const Json& limit = rule["concurrency"]; limit.is_object()) {
    text += fmt::format("{}{} in flight (ttl {})", text.empty() ? "" : " and ",
                        limit["requests"].count(), PrintableIn(limit, "ttl"));
  }
  return text.empty() ? "unlimited" : text;
}

std::string LimitsOf(const Json& rule, bool with_algorithm) {
  if (!rule.is_object()) return "none";
  const std::string own = OwnLimitsOf(rule, with_algorithm);
  const Json& rollout = rule["rollout"];
  if (!rollout.is_object()) return own;
  const Json& percent = rollout["percent"];
  const std::string reach = percent.is_number() ? fmt::format("{} % of the keys", percent.number())
                                                : std::string("in shadow");
  return fmt::format("{} ({}: {})", own, reach, OwnLimitsOf(rollout, with_algorithm));
}

std::string ValueOf(const Json& value) {
  if (value.is_string()) return rule::Printable(value.text());
  return value.is_null() ? "none" : rule::Printable(value.Text());
}

// ", sharing none -> exact", for everything else that differs.
std::string OtherDifferences(const Json& before, const Json& after) {
  if (!before.is_object() || !after.is_object()) return "";
  constexpr std::array<std::string_view, 5> kShownBefore = {"domain", "rule", "limits",
                                                            "concurrency", "rollout"};
  std::string text;
  for (const auto& [name, new_value] : after.members()) {
    const Json& old_value = before[name];
    if (std::ranges::find(kShownBefore, name) == kShownBefore.end() &&
        old_value.Text() != new_value.Text())
      text += fmt::format(", {} {} -> {}", rule::Printable(name), ValueOf(old_value),
                          ValueOf(new_value));
  }
  return text;
}

std::string Differences(const Json& answer) {
  std::string text;
  for (const Json& change : answer["changes"].items()) {
    const Json& before = change["before"];
    const Json& after = change["after"];
    // If all limits have one algorithm, it is not shown.
    std::set<std::string> algorithms;
    AddAlgorithms(before, algorithms);
    AddAlgorithms(after, algorithms);
    const bool differ = algorithms.size() > 1;
    text += fmt::format("{:<8} {} {}: {} -> {}{}", PrintableIn(change, "change"),
                        PrintableIn(change, "domain"), PrintableIn(change, "rule"),
                        LimitsOf(before, differ), LimitsOf(after, differ),
                        OtherDifferences(before, after));
    if (const Json& live = change["live_keys"]; live.is_number())
      text += fmt::format("  ({} live keys)", live.count());
    text += '\n';
  }
  for (const Json& problem : answer["waits_for"].items()) {
    text += fmt::format("waits for: {}: {}\n", PrintableIn(problem, "place"),
                        PrintableIn(problem, "message"));
  }
  return text;
}

}  // namespace

std::optional<std::string> DocumentsText(std::string_view body) {
  const Json answer = Json::Parse(body).value_or(nullptr);
  if (!IsList(answer["documents"]) || !IsList(answer["problems"])) return std::nullopt;
  std::string text;
  for (const Json& document : answer["documents"].items()) {
    if (!document["in_force"].is_bool() || !document["name"].is_string() ||
        !IsList(document["problems"]))
      return std::nullopt;
    const size_t problems = document["problems"].items().size();
    text += fmt::format("{:<12} {}{}\n", document["in_force"].truth() ? "in force" : "not in force",
                        PrintableIn(document, "name"),
                        problems == 0   ? ""
                        : problems == 1 ? "  (1 problem)"
                                        : fmt::format("  ({} problems)", problems));
    for (const Json& problem : document["problems"].items()) text += ProblemLine(problem);
  }
  for (const Json& problem : answer["problems"].items()) text += ProblemLine(problem);
  return text;
}

std::optional<std::string> HistoryText(std::string_view body) {
  const Json answer = Json::Parse(body).value_or(nullptr);
  if (!IsList(answer["changes"])) return std::nullopt;
  std::string text;
  for (const Json& change : answer["changes"].items()) {
    const std::string outcome = PrintableIn(change, "outcome");
    text += fmt::format("{}  {}  {} {} by {}{}\n", PrintableIn(change, "id"),
                        PrintableIn(change, "time"), PrintableIn(change, "action"),
                        PrintableIn(change, "document"),
                        PrintableIn(change, change["user"].text().empty() ? "address" : "user"),
                        outcome == "done" ? "" : fmt::format("  ({})", outcome));
  }
  return text;
}

std::optional<ShownChange> ShowChange(std::string_view body) {
  const Json answer = Json::Parse(body).value_or(nullptr);
  if (!answer["diff"].is_string() || !IsList(answer["changes"])) return std::nullopt;
  const std::string_view diff = answer["diff"].text();
  ShownChange shown{.changes = !diff.empty(), .text = {}};
  if (shown.changes)
    shown.text = PrintableIn(answer, "document") + "\n" + rule::PrintableLines(diff);
  shown.text += Differences(answer);
  if (!shown.changes) shown.text += "nothing changes\n";
  return shown;
}

}  // namespace headgate::app
