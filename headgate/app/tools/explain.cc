#include "headgate/app/tools/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "headgate/app/settings/arguments.h"
#include "headgate/app/settings/entries.h"
#include "headgate/app/settings/rule_files.h"
#include "headgate/app/settings/setting_arguments.h"
#include "headgate/base/clock.h"
#include "headgate/base/text.h"
#include "headgate/follow/mappings.h"
#include "headgate/gate/judge.h"
#include "headgate/http/token.h"
#include "headgate/rule/concurrency.h"
#include "headgate/rule/explain.h"
#include "headgate/rule/limit_text.h"
#include "headgate/rule/quote.h"
#include "headgate/wire/json.h"

namespace headgate::app {
namespace {

using wire::Json;

struct ExplainArguments {
  Configuration
      configuration;  // the settings that name the rules; empty if the command line names them
  std::vector<std::string> rules;
  std::vector<std::string> rule;
  bool merge_domains = false;
  bool as_json = false;
  std::optional<std::string> domain;
  std::vector<std::string> words;  // a domain, perhaps, and a descriptor

  // A request instead of a descriptor.
  std::optional<std::string> request;  // "GET /search?q=1"
  std::vector<std::string> headers;    // "X-API-Key: k1"
  std::optional<std::string> client_address;
  std::optional<std::string> auth;  // the mappings; those of the settings if absent
  std::optional<std::string> auth_header;
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
void AddRule(const rule::Rule& rule, Json& answer) {
  answer["rule"] = rule.label();
  answer["path"] = rule.path;
  answer["name"] = rule.name.empty() ? Json() : Json(rule.name);
  answer["limits"] = Json::Array();
  for (const rule::RuleLimit& limit : rule.limits) answer["limits"].Append(rule::Describe(limit));
  if (rule.concurrency) answer["limits"].Append(rule::Describe(*rule.concurrency));
  answer["nothing_passes"] =
      std::any_of(rule.limits.begin(), rule.limits.end(), rule::NothingPasses) ||
      (rule.concurrency && rule.concurrency->max == 0);
  answer["unlimited"] = rule.unlimited;
  if (rule.rollout != nullptr) {
    Json& rollout = answer["rollout"];
    rollout["reach"] = rule::DescribeReach(*rule.rollout);
    for (const rule::RuleLimit& limit : rule.rollout->limits)
      rollout["limits"].Append(rule::Describe(limit));
  }
  answer["shadow_mode"] = rule.shadow_mode;
  answer["quota_mode"] = rule.quota_mode;
  answer["quota_unit"] = base::Name(rule.quota_unit);
  if (rule.rate_limit_fields) answer["rate_limit_fields"] = base::Name(*rule.rate_limit_fields);
  if (rule.refusal) answer["refusal"] = rule.refusal->content_type();
  answer["replaces"] = Json::Array({rule.replaces.begin(), rule.replaces.end()});
}

Json ToJson(const rule::Explanation& explanation) {
  Json steps = Json::Array();
  for (const rule::ExplainedStep& step : explanation.steps) {
    steps.Append(Json::Object({{"entry", step.entry},
                               {"matched_by", Name(step.matched_by)},
                               {"matched_by_text", rule::Describe(step.matched_by)},
                               {"node", step.node},
                               {"has_limit", step.has_limit},
                               {"others", Json::Array({step.others.begin(), step.others.end()})}}));
  }
  Json answer = Json::Object({{"domain", explanation.domain},
                              {"domain_known", explanation.domain_known},
                              {"steps", std::move(steps)},
                              {"rule", nullptr},
                              {"bucket", explanation.bucket},
                              {"verdict", explanation.verdict}});
  if (explanation.rule != nullptr) AddRule(*explanation.rule, answer);
  return answer;
}

std::string AsText(const Json& answer) { return answer.IndentedText(2) + "\n"; }

// The words of a result that has no descriptors and no problem.
std::string_view WordsOf(mapping::MappedAs as) {
  using mapping::MappedAs;
  switch (as) {
    case MappedAs::kUnmatched:
      return "no mapping fits: the request passes";
    case MappedAs::kExempt:
      return "a list of exempt names it: the request passes";
    case MappedAs::kPreflight:
      return "it is a preflight: the request passes";
    case MappedAs::kRefused:
      return "a list of refuse names it: the request is refused";
    case MappedAs::kMissing:
    case MappedAs::kInvalid:
    case MappedAs::kDescriptors:
      break;
  }
  return "no descriptor is left";
}

// How the entry of this key is read by the mapping.
std::string SourceOf(const mapping::Mapping& mapping, std::string_view key) {
  for (const mapping::MappedDescriptor& descriptor : mapping.descriptors) {
    for (const mapping::MappedEntry& entry : descriptor.entries) {
      if (entry.key == key) return Describe(entry.attribute);
    }
  }
  return "";
}

// Null if the rule counts the size of the request or of its answer.
Json CostOf(const rule::Descriptor& descriptor, const rule::Explanation& explanation) {
  const bool by_size = explanation.rule != nullptr &&
                       std::ranges::any_of(explanation.rule->limits, [](const auto& limit) {
                         return limit.cost && limit.cost->of != rule::SizeCost::Of::kCountedAnswers;
                       });
  if (by_size && !descriptor.cost) return nullptr;
  return descriptor.cost.value_or(1);
}

// Prints the way from the request to the rules: attributes, descriptors, and for each descriptor
// the rule and its bucket.
void PrintRequest(const ExplainArguments& arguments, const mapping::MappedRequest& mapped,
                  const rule::RuleTree& rules, const Console& console) {
  Json answer = Json::Object({{"mapping", nullptr},
                              {"result", nullptr},
                              {"outcome", nullptr},
                              {"status", nullptr},
                              {"descriptors", Json::Array()}});
  std::string text = fmt::format("request {}\n", *arguments.request);
  const auto add_outcome = [&](const gate::OutcomeAndStatus& of) {
    text += fmt::format("  outcome {}, status {}\n", Name(of.outcome), of.status);
    answer["outcome"] = Name(of.outcome);
    answer["status"] = of.status;
  };
  if (mapped.mapping != nullptr) {
    answer["mapping"] = mapped.mapping->name;
    text += fmt::format("  mapping {}\n", mapped.mapping->name);
  }
  if (mapped.descriptors.empty()) {
    std::string result(WordsOf(mapped.as));
    if (!mapped.attribute.empty()) result = DescribeProblem(mapped);
    text += fmt::format("  {}\n", result);
    answer["result"] = result;
    add_outcome(gate::OutcomeOf(mapped));
  }
  if (mapped.token_refusal != jwt::Refusal::kNone) {
    text += fmt::format("  token refused: {}\n", Describe(mapped.token_refusal));
    answer["token_refused"] = Describe(mapped.token_refusal);
  }
  bool any_rule = false;
  for (const rule::Descriptor& descriptor : mapped.descriptors) {
    Json entries = Json::Array();
    for (const rule::Entry& entry : descriptor.entries) {
      const std::string source = SourceOf(*mapped.mapping, entry.key);
      text += fmt::format("  {} = {}   from {}\n", entry.key, rule::Shown(entry.value), source);
      entries.Append(Json::Object({{"key", entry.key}, {"value", entry.value}, {"from", source}}));
    }
    if (!descriptor.given_limit.empty())
      text += fmt::format("  limit_from gives {}\n", rule::Quote(descriptor.given_limit));
    const rule::Explanation explanation =
        rule::Explain(rules, mapped.mapping->domain, descriptor.entries);
    text += Describe(explanation);
    any_rule = any_rule || explanation.rule != nullptr;
    answer["descriptors"].Append(Json::Object({{"entries", std::move(entries)},
                                               {"cost", CostOf(descriptor, explanation)},
                                               {"limit_from", descriptor.given_limit},
                                               {"explanation", ToJson(explanation)}}));
  }
  if (!mapped.descriptors.empty() && mapped.mapping->require_rule && !any_rule)
    add_outcome({gate::RequestOutcome::kNoRule, mapped.mapping->statuses.no_rule});
  console.out << (arguments.as_json ? AsText(answer) : text);
}

// Takes the mappings of the arguments or else those of `headgate serve` here. Null after an error.
std::shared_ptr<const mapping::MappingSet> FindMappings(ExplainArguments& arguments,
                                                        const Console& console) {
  std::string path = arguments.auth.value_or("");
  std::string header = arguments.auth_header.value_or("");
  if (path.empty() && header.empty()) {
    const Configuration configuration = Configure({}, ProcessEnvironment());
    if (SayProblems(configuration, console)) return nullptr;
    path = configuration.settings.auth;
    header = configuration.settings.auth_header;
  }
  if (!header.empty()) return mapping::MappingOfHeader(header);
  if (path.empty()) {
    console.Error("no mappings are given or configured",
                  "headgate explain --auth auth.yaml --request 'GET /search'");
    return nullptr;
  }
  const mapping::LoadedMappings loaded = follow::LoadMappingFile(path);
  SayProblems(loaded.problems, console);
  return loaded.set;
}

// Explains the request of the arguments.
int ExplainRequest(ExplainArguments& arguments, const rule::RuleTree& rules,
                   const Console& console) {
  const auto set = FindMappings(arguments, console);
  if (set == nullptr) return kExitUsage;
  mapping::DescribedRequest request;
  const std::string_view line = *arguments.request;
  const size_t space = line.find(' ');
  request.method = line.substr(0, space);
  request.target = space == line.npos ? std::string_view() : line.substr(space + 1);
  // A request line may be pasted with its version.
  if (const size_t version = request.target.rfind(" HTTP/"); version != request.target.npos)
    request.target = request.target.substr(0, version);
  if (!request.target.starts_with('/')) {
    console.Error(fmt::format("'{}' is not a request", line), "--request 'GET /search?q=1'");
    return kExitUsage;
  }
  std::vector<mapping::HeaderField> fields;
  bool has_host = false;
  for (const std::string& header : arguments.headers) {
    const size_t colon = header.find(':');
    const std::string_view name = std::string_view(header).substr(0, colon);
    if (colon == header.npos || !http::IsToken(name)) {
      console.Error(fmt::format("'{}' is not a header", header), "--header 'X-API-Key: k1'");
      return kExitUsage;
    }
    const size_t value = std::min(header.find_first_not_of(" \t", colon + 1), header.size());
    fields.emplace_back(name, std::string_view(header).substr(value));
    if (!base::EqualsIgnoreCase(name, "Host")) continue;
    if (std::exchange(has_host, true)) {
      console.Error("the request has two Host headers",
                    "a server answers such a request with 400; leave one of them out");
      return kExitUsage;
    }
    request.host = fields.back().second;
  }
  request.fields = fields;
  if (arguments.client_address) {
    request.client = base::ParseIpAddress(*arguments.client_address);
    if (!request.client) {
      console.Error(fmt::format("'{}' is not an address", *arguments.client_address),
                    "--client-address 203.0.113.7");
      return kExitUsage;
    }
  }
  mapping::Mapper mapper;
  mapper.Use(*set);
  const int64_t now_s = base::SystemClock().WallNow().ns / 1'000'000'000;
  PrintRequest(arguments, mapper.Map(request, now_s), rules, console);
  return kExitOk;
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
                                    {"--domain", &parsed.domain},
                                    {"--request", &parsed.request},
                                    {"--header", &parsed.headers},
                                    {"--client-address", &parsed.client_address},
                                    {"--auth", &parsed.auth},
                                    {"--auth-header", &parsed.auth_header}},
                          .others = &parsed.words};
  if (!ParseArguments(spec, arguments, console)) return kExitUsage;
  if (parsed.request && !parsed.words.empty()) {
    console.Error("a request and a descriptor exclude each other", "leave one of them out");
    return kExitUsage;
  }
  std::optional<DescriptorArguments> descriptors;
  if (!parsed.request) {
    auto from_words = ParseDescriptorArguments(parsed.domain, parsed.words);
    if (!from_words.ok() || from_words->descriptors.size() != 1) {
      console.Error(from_words.ok() ? "explain takes one descriptor"
                                    : std::string(from_words.status().message()),
                    "headgate explain DOMAIN k=v,k=v…; quote a value that holds a comma");
      return kExitUsage;
    }
    descriptors = *std::move(from_words);
  }
  if (!FindRules(parsed, console)) return kExitUsage;
  const watch::RulesOfPaths loaded =
      LoadPaths(parsed.rules, parsed.rule, parsed.merge_domains, console);
  if (!loaded.result.ok()) {
    SayProblems(loaded.result.problems, parsed.configuration, console);
    return kExitUsage;
  }
  if (parsed.request) return ExplainRequest(parsed, *loaded.result.rules, console);
  const rule::Explanation explanation = rule::Explain(*loaded.result.rules, descriptors->domain,
                                                      EntriesOf(descriptors->descriptors.front()));
  console.out << (parsed.as_json ? AsText(ToJson(explanation)) : Describe(explanation));
  return kExitOk;
}

}  // namespace headgate::app
