#include "headgate/rule/read/file_loader.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "headgate/base/utf8.h"
#include "headgate/rule/read/document.h"
#include "headgate/rule/read/limit_choices.h"
#include "headgate/rule/read/limit_reader.h"
#include "headgate/rule/read/metadata.h"
#include "headgate/rule/read/refusal_reader.h"
#include "headgate/rule/read/scalar.h"
#include "headgate/rule/rule_names.h"

namespace headgate::rule::read {
namespace {

std::string Joined(std::string_view key, std::string_view value) {
  return value.empty() ? std::string(key) : fmt::format("{}_{}", key, value);
}

// The place of the first byte that is not UTF-8. libyaml would not find it: it accepts UTF-16 too,
// and does not read bytes behind the document.
std::optional<Mark> FirstNotUtf8(std::string_view text) {
  Mark mark{.line = 1, .column = 1};
  while (!text.empty()) {
    const base::Utf8Prefix first = base::FirstUtf8(text);
    if (!first.well_formed) return mark;
    const bool line_ends = text.front() == '\n';
    mark = line_ends ? Mark{.line = mark.line + 1, .column = 1}
                     : Mark{.line = mark.line, .column = mark.column + 1};
    text.remove_prefix(first.bytes);
  }
  return std::nullopt;
}

}  // namespace

NodeId LoadState::SpareDomain() { return builder.Domain(fmt::format("\x01{}", ++spare_count)); }

NodeId LoadState::Spare(NodeId parent) {
  while (true) {
    const auto [node, added] = builder.AddChild(parent, fmt::format("\x01{}", ++spare_count), {});
    if (added) return node;
  }
}

void FileLoader::Load(std::vector<Problem>& problems, std::vector<Problem>& warnings) {
  LoadFile();
  for (Problem& problem : std::move(problems_).Take()) problems.push_back(std::move(problem));
  for (Problem& warning : std::move(warnings_).Take()) warnings.push_back(std::move(warning));
}

void FileLoader::LoadFile() {
  const Document::Parsed parsed = Document::Parse(file_.text);
  if (parsed.error) {
    return problems_.Add(parsed.error->mark,
                         fmt::format("error loading config file: {}", parsed.error->message),
                         parsed.error->hint);
  }
  if (const auto mark = FirstNotUtf8(file_.text)) {
    return problems_.Add(*mark, "error loading config file: the text is not UTF-8",
                         "save the file in the encoding UTF-8");
  }
  const DocumentNode* root = parsed.document->root();
  if (root == nullptr ||
      (root->kind == NodeKind::kScalar && Resolve(*root).type == ScalarType::kNull)) {
    return problems_.Add({}, "config file cannot have empty domain",
                         "begin the file with \"domain: NAME\"");
  }
  if (root->kind != NodeKind::kMapping) {
    return reader_.ReportType(*root, "map[interface {}]interface {}",
                              "begin the file with \"domain: NAME\"");
  }
  LoadRoot(*root);
}

void FileLoader::LoadRoot(const DocumentNode& root) {
  Fields fields = reader_.Read(root, Context::kFile);
  const std::string_view domain = reader_.Text(fields, Word::kDomain);
  NodeId node = kNoNode;
  if (domain.empty()) {
    if (!fields.reported(Word::kDomain)) {
      reader_.Report(fields, Word::kDomain, "config file cannot have empty domain",
                     "begin the file with \"domain: NAME\"");
    }
  } else if (CheckSize(fields, Word::kDomain, domain)) {
    node = state_.builder.Domain(domain);
    const auto [origin, is_first] = state_.origins.try_emplace(
        node, LoadState::Origin{.file = file_.name, .mark = fields.mark(Word::kDomain)});
    if (!is_first && merge_domains_ == MergeDomains::kNo) {
      const auto& [file, mark] = origin->second;
      reader_.Report(fields, Word::kDomain,
                     fmt::format("duplicate domain '{}' in config file", Shown(domain)),
                     fmt::format("it is in {}:{} too; put both into one file, or let files share a "
                                 "domain: --merge-domains, or "
                                 "merge_domains: yes in headgate.yaml",
                                 file, mark.line));
      node = kNoNode;
    }
  }
  if (node == kNoNode) node = state_.SpareDomain();
  if (reader_.Truth(fields, Word::kAllOrNothing)) state_.builder.SetAllOrNothing(node);
  LoadDescriptors(
      fields,
      {.node = node, .domain = domain, .path = {}, .identity = DomainIdentity(domain), .depth = 0});
}

void FileLoader::LoadDescriptors(Fields& fields, const Level& level) {
  const auto descriptors = reader_.List(fields, Word::kDescriptors, "[]config.YamlDescriptor");
  if (!descriptors.empty() && level.depth == kEntriesMax) {
    return reader_.Report(fields, Word::kDescriptors,
                          fmt::format("descriptors are nested deeper than {} levels", kEntriesMax),
                          "no request has that many entries");
  }
  for (const DocumentNode* descriptor : descriptors) {
    if (problems_.full() || state_.path_bytes > kPathBytesMax) return;
    if (descriptor->kind == NodeKind::kMapping) LoadDescriptor(*descriptor, level);
  }
}

void FileLoader::LoadDescriptor(const DocumentNode& mapping, const Level& level) {
  Fields fields = reader_.Read(mapping, Context::kDescriptor);
  const std::string_view key = reader_.Text(fields, Word::kKey);
  const std::string_view value = reader_.Text(fields, Word::kValue);
  const std::string composite = Joined(key, value);
  state_.path_bytes += level.path.size() + level.identity.size() + 2 * composite.size();
  if (state_.path_bytes > kPathBytesMax) {
    return reader_.Report(
        fields.mark(),
        fmt::format("the paths of all rules are longer than {} bytes", kPathBytesMax),
        "use shorter keys and values, or fewer rules");
  }
  Level own{.node = MakeNode(fields, key, value, level),
            .domain = level.domain,
            .path = level.path.empty() ? composite : fmt::format("{}.{}", level.path, composite),
            .identity = ChildIdentity(level.identity, key, value),
            .depth = level.depth + 1};
  LoadRule(fields, own);
  if (reader_.Truth(fields, Word::kShareThreshold)) {
    if (IsPattern(composite)) {
      state_.builder.SetShareThreshold(own.node);
    } else {
      reader_.Report(fields, Word::kShareThreshold,
                     fmt::format("share_threshold can only be used with wildcard values "
                                 "(containing '*'), but found key '{}'",
                                 Shown(composite)),
                     "without a '*' there is nothing to share; leave it out");
    }
  }
  if (reader_.Truth(fields, Word::kValueToMetric)) state_.builder.SetValueInMetric(own.node);
  LoadDescriptors(fields, own);
}

NodeId FileLoader::MakeNode(Fields& fields, std::string_view key, std::string_view value,
                            const Level& level) {
  if (key.empty()) {
    if (!fields.reported(Word::kKey)) {
      reader_.Report(fields, Word::kKey, "descriptor has empty key", "add \"key: NAME\"");
    }
    return state_.Spare(level.node);
  }
  if (!CheckSize(fields, Word::kKey, key) || !CheckSize(fields, Word::kValue, value) ||
      fields.reported(Word::kValue)) {
    return state_.Spare(level.node);
  }
  const auto [node, added] = state_.builder.AddChild(level.node, key, value);
  if (added) {
    state_.origins.emplace(node,
                           LoadState::Origin{.file = file_.name, .mark = fields.mark(Word::kKey)});
    return node;
  }
  const auto& [file, mark] = state_.origins[node];
  const std::string_view dot = level.path.empty() ? "" : ".";
  reader_.Report(fields.mark(Word::kKey),
                 fmt::format("duplicate descriptor composite key '{}'",
                             Shown(fmt::format("{}.{}{}{}", level.domain, level.path, dot,
                                               Joined(key, value)))),
                 fmt::format("it is in {}:{}:{} too; put both into one descriptor", file, mark.line,
                             mark.column));
  return state_.Spare(level.node);
}

void FileLoader::LoadRule(Fields& fields, const Level& level) {
  Rule rule;
  StoreFields store_fields;
  const bool limited = ReadLimits(fields, {}, rule, store_fields);
  rule.shadow_mode = reader_.Truth(fields, Word::kShadowMode);
  rule.quota_mode = reader_.Truth(fields, Word::kQuotaMode);
  rule.detailed_metric = reader_.Truth(fields, Word::kDetailedMetric);
  rule.value_to_metric = reader_.Truth(fields, Word::kValueToMetric);
  ReadMetadata(fields, rule);
  ReadAnswers(fields, rule);
  ReadRollout(fields, store_fields, rule);
  if (!limited) return;

  rule.domain = level.domain;
  rule.path = level.path;
  rule.identity = level.identity;
  state_.builder.SetRule(level.node, std::move(rule));
}

bool FileLoader::ReadLimits(Fields& fields, const StoreFields& inherited, Rule& rule,
                            StoreFields& own) {
  const auto single = fields.rate_limits();
  const bool has_single = fields.has(Word::kRateLimit) && single.back()->kind == NodeKind::kMapping;
  if (fields.has(Word::kRateLimit) && !has_single) {
    const DocumentNode& node = *single.back();
    const bool is_null = node.kind == NodeKind::kScalar && Resolve(node).type == ScalarType::kNull;
    if (!is_null)
      reader_.ReportType(node, "config.YamlRateLimit",
                         "'rate_limit' is a mapping: unit, requests_per_unit, …");
  }
  const auto several = reader_.List(fields, Word::kRateLimits, "a list of rate limits");
  if (has_single && fields.has(Word::kRateLimits)) {
    reader_.Report(fields, Word::kRateLimits, "should not specify both rate_limit and rate_limits",
                   "move the one limit into the list");
    return false;
  }
  const auto read = [&](std::span<const DocumentNode* const> limit, LimitForm form, size_t place,
                        size_t count) {
    LimitFields has = LimitFields::kEnvoys;
    const InheritedPlaces from = InheritedBy(place, count, inherited.size());
    for (size_t i = from.first; i < from.end; ++i)
      if (inherited[i]) has = LimitFields::kOurs;
    own.push_back(ReadLimit(reader_, limit, form, has, rule));
  };
  if (has_single) {
    read(single, LimitForm::kOnly, 0, 1);
    return true;
  }
  if (!fields.has(Word::kRateLimits) || fields.reported(Word::kRateLimits)) return false;
  if (several.empty() || several.size() > kLimitsPerRuleMax) {
    reader_.Report(fields, Word::kRateLimits,
                   fmt::format("rate_limits has {} limits; it may have 1 to {}", several.size(),
                               kLimitsPerRuleMax),
                   several.empty() ? "leave rate_limits out if there is no limit"
                                   : "keep the strictest ones: a rule has at most 16 limits");
    return false;
  }
  for (size_t i = 0; i < several.size(); ++i)
    read(several.subspan(i, 1), LimitForm::kItem, i, several.size());
  return true;
}

void FileLoader::ReadRollout(Fields& fields, const StoreFields& inherited, Rule& rule) {
  const DocumentNode* const node = fields.value(Word::kRollout);
  if (node == nullptr) return;
  if (node->kind != NodeKind::kMapping) {
    return reader_.ReportType(*node, "a roll-out",
                              "'rollout' is a mapping: percent or shadow, and rate_limit");
  }
  if (rule.limits.empty() && !rule.unlimited && !fields.reported(Word::kRateLimit)) {
    return reader_.Report(fields, Word::kRollout,
                          rule.concurrency ? "a roll-out of a rule that limits only concurrency"
                                           : "a roll-out of a rule that has no limit",
                          "add the rate_limit that holds until it is promoted");
  }
  Fields rollout = reader_.Read(*node, Context::kRollout);
  auto made = std::make_shared<Rollout>();
  const bool shadow = reader_.Truth(rollout, Word::kShadow);
  if (shadow == rollout.has(Word::kPercent) && !rollout.any_reported()) {
    return reader_.Report(fields, Word::kRollout,
                          shadow ? "both shadow and percent" : "neither shadow nor percent",
                          "percent: 5 is for this part of the keys, shadow: true for none yet");
  }
  if (!shadow) made->keys_ppm = ReadPercent(rollout);
  if (!shadow && rule.unlimited) {
    reader_.Report(rollout, Word::kPercent, "a percentage of the keys of an unlimited rule",
                   "try the limit in shadow: true, or replace the rule");
  }
  Rule tried;
  StoreFields none;
  if (!ReadLimits(rollout, inherited, tried, none)) {
    if (!rollout.any_reported())
      reader_.Report(fields, Word::kRollout, "a roll-out without a limit", "add rate_limit");
    return;
  }
  if (tried.concurrency) {
    return reader_.Report(fields, Word::kRollout, "a roll-out cannot try a limit of concurrency",
                          "change the limit of the rule itself; requests in flight stay in flight");
  }
  if (tried.unlimited || !tried.name.empty() || !tried.replaces.empty() || tried.sharing ||
      tried.on_store_failure || tried.fallback_share_ppm) {
    return reader_.Report(fields, Word::kRollout,
                          "a roll-out changes only the numbers and the algorithm of a limit",
                          "name, replaces, unlimited, sharing, strict, on_store_failure and "
                          "fallback_share belong to the rule's own rate_limit");
  }
  made->limits = std::move(tried.limits);
  rule.rollout = std::move(made);
}

uint32_t FileLoader::ReadPercent(Fields& rollout) {
  const std::string_view text = reader_.Text(rollout, Word::kPercent);
  if (rollout.reported(Word::kPercent)) return 0;
  if (const auto part = PercentByText(text)) return *part;
  reader_.Report(rollout, Word::kPercent, fmt::format("invalid percent '{}'", Shown(text)),
                 "a number above 0, at most 100, with at most four places, such as 5 or 0.1");
  return 0;
}

void FileLoader::ReadAnswers(Fields& fields, Rule& rule) {
  if (const std::string_view name = reader_.Text(fields, Word::kRateLimitFields); !name.empty()) {
    rule.rate_limit_fields = base::DialectByName(name);
    if (!rule.rate_limit_fields) {
      reader_.Report(fields, Word::kRateLimitFields,
                     fmt::format("invalid rate_limit_fields '{}'", Shown(name)),
                     "one of " + base::DialectNames());
    }
  }
  if (const std::string_view name = reader_.Text(fields, Word::kQuotaUnit); !name.empty()) {
    std::string hint;
    if (const auto unit = ChoiceByName(kQuotaUnits, name, hint)) {
      rule.quota_unit = *unit;
    } else {
      reader_.Report(fields, Word::kQuotaUnit, fmt::format("invalid quota_unit '{}'", Shown(name)),
                     std::move(hint));
    }
  }
  if (const DocumentNode* const node = fields.value(Word::kRefusal))
    rule.refusal = ReadRefusal(*node, problems_);
}

void FileLoader::ReadMetadata(Fields& fields, Rule& rule) {
  const DocumentNode* const node = fields.value(Word::kMetadata);
  if (node == nullptr ||
      (node->kind == NodeKind::kScalar && Resolve(*node).type == ScalarType::kNull))
    return;
  if (node->kind != NodeKind::kMapping) {
    return reader_.ReportType(*node, "map[string]interface {}", "'metadata' is a mapping");
  }
  auto json = MetadataJson(*node);
  if (!json.ok()) {
    return reader_.Report(
        fields, Word::kMetadata,
        fmt::format("error parsing metadata: {}", std::string(json.status().message())),
        "metadata must be convertible to a JSON object");
  }
  rule.metadata_json = *std::move(json);
}

bool FileLoader::CheckSize(Fields& fields, Word word, std::string_view text) {
  if (text.size() <= kTextBytesMax) return true;
  reader_.Report(fields, word,
                 fmt::format("{} is longer than {} bytes", TextOf(word), kTextBytesMax),
                 "use a shorter one, or a pattern with '*'");
  return false;
}

}  // namespace headgate::rule::read
