#include "headgate/app/explain.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "headgate/app/arguments.h"
#include "headgate/app/entries.h"
#include "headgate/app/rule_files.h"
#include "headgate/app/serve_arguments.h"
#include "headgate/rule/explain.h"
#include "headgate/rule/limit_words.h"

namespace headgate::app {
namespace {

using nlohmann::ordered_json;

struct ExplainArguments {
  Configuration
      configuration;  // its rules and how they were named; empty for those of the command line
  std::vector<std::string> rules;
  std::vector<std::string> rule;
  bool merge_domains = false;
  bool as_json = false;
  std::optional<std::string> domain;
  std::vector<std::string> words;  // a domain, perhaps, and a descriptor
};

std::string_view Name(rule::MatchedBy matched_by) {
  switch (matched_by) {
    case rule::MatchedBy::kExact:
      return "exact";
    case rule::MatchedBy::kPattern:
      return "pattern";
    case rule::MatchedBy::kKey:
      return "key";
    case rule::MatchedBy::kNothing:
      return "nothing";
  }
  return "";
}

// Adds everything that the text form shows about the rule.
void AddRule(const rule::Rule& rule, ordered_json& answer) {
  answer["rule"] = std::string(rule.label());
  answer["path"] = rule.path;
  answer["name"] = rule.name.empty() ? ordered_json(nullptr) : ordered_json(rule.name);
  answer["limits"] = ordered_json::array();
  for (const rule::RuleLimit& limit : rule.limits)
    answer["limits"].push_back(rule::Describe(limit.limit));
  answer["nothing_passes"] =
      std::any_of(rule.limits.begin(), rule.limits.end(), rule::NothingPasses);
  answer["unlimited"] = rule.unlimited;
  answer["shadow_mode"] = rule.shadow_mode;
  answer["quota_mode"] = rule.quota_mode;
  answer["replaces"] = rule.replaces;
}

std::string AsJson(const rule::Explanation& explanation) {
  ordered_json steps = ordered_json::array();
  for (const rule::ExplainedStep& step : explanation.steps) {
    steps.push_back({{"entry", step.entry},
                     {"matched_by", Name(step.matched_by)},
                     {"matched_by_text", rule::Describe(step.matched_by)},
                     {"node", step.node},
                     {"has_limit", step.has_limit},
                     {"others", step.others}});
  }
  ordered_json answer = {{"domain", explanation.domain}, {"domain_known", explanation.domain_known},
                         {"steps", std::move(steps)},    {"rule", nullptr},
                         {"bucket", explanation.bucket}, {"verdict", explanation.verdict}};
  if (explanation.rule != nullptr) AddRule(*explanation.rule, answer);
  return answer.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

// If the arguments name no rules, takes the rules that `headgate serve` would use here.
bool FindRules(ExplainArguments& arguments, const Console& console) {
  if (!arguments.rules.empty() || !arguments.rule.empty()) return true;
  arguments.configuration = Configure({}, ProcessEnvironment());
  const Configuration& configuration = arguments.configuration;
  if (SayProblems(configuration, console)) return false;
  arguments.rules = configuration.settings.rules;
  arguments.rule = configuration.settings.rule;
  arguments.merge_domains =
      arguments.merge_domains || configuration.settings.merge_domains == "yes";
  if (!arguments.rules.empty() || !arguments.rule.empty()) return true;
  console.Error("no rules are given or configured",
                "headgate explain --rules rules.yaml DOMAIN k=v,k=v…");
  return false;
}

}  // namespace

int Explain(const std::vector<std::string>& arguments, const Console& console) {
  ExplainArguments parsed;
  const ArgumentSpec spec{.command = "explain",
                          .flags = {{"--rules", &parsed.rules},
                                    {"--rule", &parsed.rule},
                                    {"--merge-domains", &parsed.merge_domains},
                                    {"--json", &parsed.as_json},
                                    {"--domain", &parsed.domain}},
                          .others = &parsed.words};
  if (!ParseArguments(spec, arguments, console)) return kExitUsage;
  const auto descriptors = ParseDescriptorArguments(parsed.domain, parsed.words);
  if (!descriptors.ok() || descriptors->descriptors.size() != 1) {
    console.Error(descriptors.ok() ? "explain takes one descriptor"
                                   : std::string(descriptors.status().message()),
                  "headgate explain DOMAIN k=v,k=v…; quote a value that holds a comma");
    return kExitUsage;
  }
  if (!FindRules(parsed, console)) return kExitUsage;
  const RulesFromPaths loaded = LoadPaths(parsed.rules, parsed.rule, parsed.merge_domains);
  if (!loaded.result.ok()) {
    SayProblems(loaded.result.problems, parsed.configuration, console);
    return kExitUsage;
  }
  const rule::Explanation explanation = rule::Explain(*loaded.result.rules, descriptors->domain,
                                                      EntriesOf(descriptors->descriptors.front()));
  console.out << (parsed.as_json ? AsJson(explanation) : Describe(explanation));
  return kExitOk;
}

}  // namespace headgate::app
