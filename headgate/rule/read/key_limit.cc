#include "headgate/rule/read/key_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "headgate/rule/block_words.h"
#include "headgate/rule/concurrency.h"
#include "headgate/rule/duration.h"
#include "headgate/rule/read/block_reader.h"
#include "headgate/rule/read/document.h"
#include "headgate/rule/read/file_loader.h"
#include "headgate/rule/read/key_limit_concurrency.h"
#include "headgate/rule/read/key_limit_members.h"
#include "headgate/rule/read/limit_choices.h"
#include "headgate/rule/read/limit_words.h"
#include "headgate/rule/read/scalar.h"
#include "headgate/rule/rule_names.h"

namespace headgate::rule::read {
namespace {

using algorithm::Algorithm;
using algorithm::Align;

KeyWord WordOf(LimitWordsProblem::About about) {
  using About = LimitWordsProblem::About;
  switch (about) {
    case About::kPeriod:
      return KeyWord::kWindow;
    case About::kBurst:
      return KeyWord::kBurst;
    case About::kAlign:
      return KeyWord::kAlign;
    case About::kTimezone:
      return KeyWord::kTimezone;
    case About::kCountDenied:
      return KeyWord::kCountDenied;
    case About::kOverdraw:
      return KeyWord::kOverdraw;
    case About::kBlock:
      return KeyWord::kBlock;
    case About::kQueue:
      return KeyWord::kQueue;
    case About::kMaxDelay:
      return KeyWord::kMaxDelay;
    case About::kRequests:
      break;
  }
  return KeyWord::kLimit;
}

std::optional<base::Duration> MaxDelayOf(KeyLimitMembers& members) {
  const std::string_view text = members.Text(KeyWord::kMaxDelay);
  if (text.empty()) return std::nullopt;
  const auto duration = ParseDuration(text);
  if (duration.ok()) return *duration;
  members.Report(KeyWord::kMaxDelay,
                 fmt::format("invalid MaxDelay: {}", std::string(duration.status().message())),
                 R"(write a duration: "MaxDelay": "2s")");
  return std::nullopt;
}

algorithm::BlockLengths BlockOf(KeyLimitMembers& members) {
  if (!members.has(KeyWord::kBlock)) return {};
  const auto block = ParseBlock(*members.value(KeyWord::kBlock));
  if (block.ok()) return *block;
  members.Report(KeyWord::kBlock,
                 fmt::format("invalid Block: {}", std::string(block.status().message())),
                 std::string(kBlockHint));
  return {};
}

std::optional<base::TimeZone> TimezoneOf(KeyLimitMembers& members) {
  const std::string_view name = members.Text(KeyWord::kTimezone);
  if (name.empty()) return std::nullopt;
  const auto zone = base::TimeZone::Load(name);
  if (zone.ok()) return *zone;
  members.Report(
      KeyWord::kTimezone,
      fmt::format("invalid Timezone '{}': {}", Shown(name), std::string(zone.status().message())),
      std::string(kTimezoneHint));
  return std::nullopt;
}

Period WindowOf(KeyLimitMembers& members) {
  if (members.has(KeyWord::kWindow) == members.has(KeyWord::kWindowSeconds)) {
    const bool both = members.has(KeyWord::kWindow);
    members.Report(KeyWord::kWindow,
                   both ? "both WindowSeconds and Window" : "neither WindowSeconds nor Window",
                   both ? "leave out one of them" : std::string(kKeyLimitForm));
    return {};
  }
  if (const auto seconds = members.WholeNumber(KeyWord::kWindowSeconds)) {
    // Far beyond the maximum of any algorithm, and it fits.
    constexpr uint64_t kMost = 9'000'000'000;
    return {.length = std::chrono::seconds(std::min(*seconds, kMost))};
  }
  const std::string_view text = members.Text(KeyWord::kWindow);
  if (text.empty()) return {};
  const auto period = ParsePeriod(text);
  if (period.ok()) return *period;
  members.Report(KeyWord::kWindow,
                 fmt::format("invalid Window: {}", std::string(period.status().message())),
                 R"(write a unit or a duration: "Window": "hour", or "Window": "20s")");
  return {};
}

// Adds the limit to the rule, or reports its problems.
void ReadLimitOf(KeyLimitMembers& members, Rule& rule) {
  if (SaysConcurrency(members)) return ReadConcurrency(members, rule);
  RefuseConcurrencyWords(members);
  LimitWords words;
  if (!members.has(KeyWord::kLimit))
    members.Report(KeyWord::kLimit, "no Limit", std::string(kKeyLimitForm));
  words.requests = members.WholeNumber(KeyWord::kLimit).value_or(0);
  words.period = WindowOf(members);
  words.algorithm = members.OneOf(KeyWord::kAlgorithm, kAlgorithms, {kConcurrency});
  words.burst = members.WholeNumber(KeyWord::kBurst);
  words.queue = members.Truth(KeyWord::kQueue);
  words.max_delay = MaxDelayOf(members);
  words.align = members.OneOf(KeyWord::kAlign, kAligns);
  words.timezone = TimezoneOf(members);
  words.count_denied = members.Truth(KeyWord::kCountDenied);
  words.overdraw = members.Truth(KeyWord::kOverdraw);
  words.block = BlockOf(members);
  if (!members.good()) return;
  if (!words.algorithm && !words.queue) words.algorithm = Algorithm::kFixedWindow;
  if (words.algorithm == Algorithm::kFixedWindow && !words.align && !words.timezone &&
      !FollowsCalendar(words))
    words.align = Align::kFirstHit;
  if (auto problem = ProblemWith(words)) {
    KeyWord word = WordOf(problem->about);
    if (word == KeyWord::kWindow && !members.has(word)) word = KeyWord::kWindowSeconds;
    return members.Report(word, std::move(problem->message),
                          "docs/reference/key-limits.md lists the words that can be combined");
  }
  rule.limits.push_back(*MakeLimit(words));
}

class KeyLimitReader {
 public:
  KeyLimitReader(const DocumentNode& root, ProblemList& problems, Rule& rule)
      : problems_(problems), members_(root, problems), rule_(rule) {}

  void Read() {
    rule_.name = members_.Text(KeyWord::kName);
    rule_.shadow_mode = members_.Truth(KeyWord::kShadowMode);
    rule_.sharing = members_.OneOf(KeyWord::kSharing, kSharings);
    rule_.on_store_failure = members_.OneOf(KeyWord::kOnStoreFailure, kFailures);
    ReadStrict();
    ReadShare();
    rule_.unlimited = members_.Truth(KeyWord::kUnlimited);
    if (rule_.unlimited) {
      RefuseWordsOfLimit("Unlimited");
      if (members_.has(KeyWord::kLimits))
        members_.Report(KeyWord::kLimits, "both Unlimited and Limits", "leave out one of them");
    } else if (members_.has(KeyWord::kLimits)) {
      RefuseWordsOfLimit("Limits");
      ReadLimits(*members_.value(KeyWord::kLimits));
    } else {
      ReadLimitOf(members_, rule_);
    }
    RefuseSharingOfPermits();
  }

 private:
  void ReadShare() {
    if (!members_.has(KeyWord::kFallbackShare)) return;
    const DocumentNode& node = *members_.value(KeyWord::kFallbackShare);
    if (node.kind == NodeKind::kScalar) rule_.fallback_share_ppm = ShareByText(node.text);
    if (!rule_.fallback_share_ppm) {
      members_.Report(KeyWord::kFallbackShare, "invalid FallbackShare",
                      "the share of the limit that one machine may use alone: above 0, at most 1, "
                      "with at most six places, such as 0.25");
    }
  }

  void ReadStrict() {
    if (!members_.has(KeyWord::kStrict)) return;
    const DocumentNode& node = *members_.value(KeyWord::kStrict);
    const bool locked = node.kind == NodeKind::kScalar && node.text == "lock";
    const Scalar truth = node.kind == NodeKind::kScalar ? Resolve(node) : Scalar{};
    if (!locked && truth.type != ScalarType::kBool) {
      return members_.Report(KeyWord::kStrict, "Strict is neither true nor false nor lock",
                             R"(write true, false or "lock")");
    }
    if (!locked && !truth.truth) return;
    if (rule_.sharing && *rule_.sharing != Sharing::kStrict)
      members_.Report(KeyWord::kStrict, "Strict contradicts Sharing", "leave out one of them");
    rule_.sharing = locked ? Sharing::kLocked : Sharing::kStrict;
    if (locked && rule_.on_store_failure.value_or(OnStoreFailure::kDeny) != OnStoreFailure::kDeny) {
      members_.Report(
          KeyWord::kOnStoreFailure,
          "OnStoreFailure contradicts Strict: lock, which refuses what it cannot decide",
          "leave out OnStoreFailure, or Strict");
    }
  }

  void RefuseSharingOfPermits() {
    if (!rule_.concurrency || !rule_.limits.empty()) return;
    for (const KeyWord word : {KeyWord::kSharing, KeyWord::kStrict}) {
      if (!members_.has(word)) continue;
      members_.Report(word, fmt::format("{} does not apply to concurrency", TextOf(word)),
                      "permits are always asked for one by one; leave it out");
    }
  }

  void RefuseWordsOfLimit(std::string_view other) {
    for (size_t i = 0; i < kKeyWords.size(); ++i) {
      const auto word = static_cast<KeyWord>(i);
      if (IsOfLimit(word) && members_.has(word)) {
        members_.Report(word, fmt::format("both {} and {}", other, kKeyWords[i]),
                        other == "Limits" ? "move it into the limit that it belongs to"
                                          : "leave out one of them");
      }
    }
  }

  void ReadLimits(const DocumentNode& list) {
    if (list.kind != NodeKind::kSequence || list.children.empty() ||
        list.children.size() > kLimitsPerRuleMax) {
      return members_.Report(
          KeyWord::kLimits,
          fmt::format("Limits is not a list of 1 to {} limits", kLimitsPerRuleMax),
          R"(as in "Limits": [{"Limit": 10, "WindowSeconds": 1}])");
    }
    for (const DocumentNode* item : list.children) {
      if (item->kind != NodeKind::kMapping) {
        members_.Report(item->mark, "an item of Limits is not an object",
                        std::string(kKeyLimitForm));
        continue;
      }
      KeyLimitMembers limit(*item, problems_);
      for (size_t i = 0; i < kKeyWords.size(); ++i) {
        const auto word = static_cast<KeyWord>(i);
        if (!IsOfLimit(word) && limit.has(word)) {
          limit.Report(word, fmt::format("{} is not a word of one limit", kKeyWords[i]),
                       "move it out of the list: it holds for the whole rule");
        }
      }
      ReadLimitOf(limit, rule_);
    }
  }

  ProblemList& problems_;
  KeyLimitMembers members_;
  Rule& rule_;
};

// Reads the limit into `rule`, or reports its problems.
void Read(std::string_view json, ProblemList& problems, Rule& rule) {
  if (json.size() > kKeyLimitBytesMax) {
    return problems.Add({}, fmt::format("longer than {} bytes", kKeyLimitBytesMax),
                        std::string(kKeyLimitForm));
  }
  if (json.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return problems.Add({}, "the limit is empty", std::string(kKeyLimitForm));
  const Document::Parsed parsed = Document::Parse(json);
  if (parsed.error)
    return problems.Add(parsed.error->mark, parsed.error->message, std::string(kKeyLimitForm));
  const DocumentNode* root = parsed.document->root();
  if (root == nullptr || root->kind != NodeKind::kMapping)
    return problems.Add({}, "not a JSON object", std::string(kKeyLimitForm));
  KeyLimitReader(*root, problems, rule).Read();
}

}  // namespace

void AddKeyLimit(std::string_view source, std::string_view api_key, std::string_view json,
                 LoadState& state, std::vector<Problem>& problems) {
  ProblemList found{std::string(source)};
  Rule rule;
  if (api_key.empty() || api_key.size() > kTextBytesMax)
    found.Add({}, fmt::format("the key is empty, or longer than {} bytes", kTextBytesMax), "");
  Read(json, found, rule);
  if (found.empty()) {
    const NodeId domain = state.builder.Domain(kKeyLimitDomain);
    const NodeId node = state.builder.AddChild(domain, kKeyLimitKey, api_key).node;
    state.origins.try_emplace(node, LoadState::Origin{.file = source, .mark = {}});
    if (state.builder.has_rule(node)) {
      const auto& [file, mark] = state.origins[node];
      found.Add({}, fmt::format("the key '{}' has another rule already", Shown(api_key)),
                fmt::format("it is in {}:{}; keep one of them", file, mark.line));
    } else {
      rule.domain = kKeyLimitDomain;
      rule.path = fmt::format("{}_{}", kKeyLimitKey, api_key);
      rule.identity = ChildIdentity(DomainIdentity(kKeyLimitDomain), kKeyLimitKey, api_key);
      state.builder.SetRule(node, std::move(rule));
    }
  }
  for (Problem& problem : std::move(found).Take()) problems.push_back(std::move(problem));
}

}  // namespace headgate::rule::read
