#include "headgate/rule/read/limit_reader.h"

#include <fmt/format.h>

#include <initializer_list>

#include "headgate/rule/block_words.h"
#include "headgate/rule/concurrency.h"
#include "headgate/rule/duration.h"
#include "headgate/rule/read/block_reader.h"
#include "headgate/rule/read/concurrency_reader.h"
#include "headgate/rule/read/given_limit_reader.h"
#include "headgate/rule/read/limit_choices.h"
#include "headgate/rule/read/limit_words.h"
#include "headgate/rule/read/size_cost_reader.h"
#include "headgate/rule/rule_names.h"

namespace headgate::rule::read {
namespace {

using algorithm::Algorithm;

Word RuleWordOf(LimitWordsProblem::About about) {
  using About = LimitWordsProblem::About;
  switch (about) {
    case About::kPeriod:
      return Word::kPeriod;
    case About::kBurst:
      return Word::kBurst;
    case About::kAlign:
      return Word::kAlign;
    case About::kTimezone:
      return Word::kTimezone;
    case About::kCountDenied:
      return Word::kCountDenied;
    case About::kOverdraw:
      return Word::kOverdraw;
    case About::kBlock:
      return Word::kBlock;
    case About::kQueue:
      return Word::kQueue;
    case About::kMaxDelay:
      return Word::kMaxDelay;
    case About::kRequests:
      break;
  }
  return Word::kRequestsPerUnit;
}

class LimitReader {
 public:
  LimitReader(FieldReader& reader, Fields& fields, LimitFields inherited, Rule& rule)
      : reader_(reader), fields_(fields), inherited_(inherited), rule_(rule) {}

  void Read(LimitForm form) {
    ReadName();
    ReadReplaces();
    const bool unlimited = reader_.Truth(fields_, Word::kUnlimited);
    if (unlimited) {
      ReadUnlimited(form);
    } else if (SaysConcurrency(fields_)) {
      ReadConcurrency(reader_, fields_, rule_);
    } else {
      RefuseConcurrencyWords(reader_, fields_);
      ReadWords();
    }
    ReadStoreWords();
  }

 private:
  template <typename Value, size_t N>
  std::optional<Value> OneOf(Word word, const std::array<Choice<Value>, N>& choices,
                             std::initializer_list<std::string_view> others = {}) {
    if (!fields_.has(word)) return std::nullopt;
    const std::string_view text = reader_.Text(fields_, word);
    if (fields_.reported(word)) return std::nullopt;
    std::string hint;
    if (const auto value = ChoiceByName(choices, text, hint, others)) return value;
    reader_.Report(fields_, word, fmt::format("invalid {} '{}'", TextOf(word), Shown(text)),
                   std::move(hint));
    return std::nullopt;
  }

  std::optional<base::Duration> DurationOf(Word word) {
    if (!fields_.has(word)) return std::nullopt;
    const std::string_view text = reader_.Text(fields_, word);
    if (fields_.reported(word)) return std::nullopt;
    const auto duration = ParseDuration(text);
    if (duration.ok()) return *duration;
    reader_.Report(
        fields_, word,
        fmt::format("invalid {}: {}", TextOf(word), std::string(duration.status().message())),
        "a duration is a number with a unit, such as 500ms, 20s or 1h30m");
    return std::nullopt;
  }

  std::optional<base::TimeZone> ReadTimezone() {
    if (!fields_.has(Word::kTimezone)) return std::nullopt;
    const std::string_view name = reader_.Text(fields_, Word::kTimezone);
    if (fields_.reported(Word::kTimezone)) return std::nullopt;
    const auto zone = base::TimeZone::Load(name);
    if (zone.ok()) return *zone;
    reader_.Report(
        fields_, Word::kTimezone,
        fmt::format("invalid timezone '{}': {}", Shown(name), std::string(zone.status().message())),
        std::string(kTimezoneHint));
    return std::nullopt;
  }

  void ReadBlock(LimitWords& words) {
    const DocumentNode* const node = fields_.value(Word::kBlock);
    if (node == nullptr) return;
    const auto block = ParseBlock(*node);
    if (!block.ok()) {
      return reader_.Report(fields_, Word::kBlock,
                            fmt::format("invalid block: {}", std::string(block.status().message())),
                            std::string(kBlockHint));
    }
    words.block = *block;
  }

  void ReadName() {
    const std::string_view name = reader_.Text(fields_, Word::kName);
    if (name.empty()) return;
    if (!rule_.name.empty() && rule_.name != name) {
      return reader_.Report(
          fields_, Word::kName,
          fmt::format("the rule has another name already: '{}'", Shown(rule_.name)),
          "all limits of one rule share one name");
    }
    rule_.name = name;
  }

  void ReadReplaces() {
    for (const DocumentNode* item :
         reader_.List(fields_, Word::kReplaces, "[]config.yamlReplaces")) {
      if (item->kind != NodeKind::kMapping) continue;
      Fields replaced = reader_.Read(*item, Context::kReplaced);
      const std::string_view name = reader_.Text(replaced, Word::kName);
      if (replaced.any_reported()) continue;
      if (name.empty()) {
        reader_.Report(item->mark, "should not have an empty replaces entry",
                       "write the name of another rule: \"- name: …\"");
      } else if (name == reader_.Text(fields_, Word::kName)) {
        reader_.Report(replaced.mark(Word::kName),
                       "replaces should not contain name of same descriptor",
                       "name another rule, or leave the entry out");
      } else {
        rule_.replaces.emplace_back(name);
      }
    }
  }

  void ReadUnlimited(LimitForm form) {
    rule_.unlimited = true;
    if (form == LimitForm::kItem) {
      return reader_.Report(fields_, Word::kUnlimited, "unlimited cannot be one of several limits",
                            "use rate_limit with unlimited: true, without rate_limits");
    }
    if (UnitByName(reader_.Text(fields_, Word::kUnit))) {
      reader_.Report(fields_, Word::kUnit, "should not specify rate limit unit when unlimited",
                     "leave out unit, or unlimited");
    }
    for (const Word word :
         {Word::kAlgorithm, Word::kAlign, Word::kBlock, Word::kBurst, Word::kCost, Word::kCount,
          Word::kCountDenied, Word::kMax, Word::kMaxDelay, Word::kOverdraw, Word::kPeriod,
          Word::kPlans, Word::kQueue, Word::kRequests, Word::kTimezone, Word::kTtl}) {
      if (!fields_.has(word)) continue;
      reader_.Report(fields_, word,
                     fmt::format("should not specify {} when unlimited", TextOf(word)),
                     fmt::format("leave out {}, or unlimited", TextOf(word)));
    }
  }

  void ReadWords() {
    LimitWords words;
    words.envoy = inherited_ == LimitFields::kEnvoys && !fields_.has_ours();
    words.requests = reader_.Unsigned32(fields_, Word::kRequestsPerUnit);
    if (!fields_.has(Word::kRequestsPerUnit) && !fields_.reported(Word::kRequestsPerUnit)) {
      reader_.Warn(
          fields_.mark(), "no requests_per_unit: every request is denied",
          "add requests_per_unit: N; write requests_per_unit: 0 if you mean to deny every request");
    }
    ReadPeriod(words);
    words.algorithm = ReadAlgorithm();
    if (fields_.has(Word::kBurst)) words.burst = reader_.Unsigned64(fields_, Word::kBurst);
    words.queue = reader_.Truth(fields_, Word::kQueue);
    words.max_delay = DurationOf(Word::kMaxDelay);
    words.align = OneOf(Word::kAlign, kAligns);
    words.timezone = ReadTimezone();
    words.count_denied = reader_.Truth(fields_, Word::kCountDenied);
    words.overdraw = reader_.Truth(fields_, Word::kOverdraw);
    ReadBlock(words);
    const std::optional<SizeCost> cost = ReadLaterCost(reader_, fields_);
    const bool by_status = cost && cost->of == SizeCost::Of::kCountedAnswers;
    if (by_status && !fields_.has(Word::kAlgorithm) && !fields_.has(Word::kAlign))
      words.algorithm = Algorithm::kSlidingWindowCounter;
    if (fields_.any_reported()) return;

    if (auto problem = ProblemWith(words)) {
      return reader_.Report(fields_, RuleWordOf(problem->about), std::move(problem->message),
                            "docs/reference/rules.md lists the words that can be combined");
    }
    auto limit = MakeLimit(words);
    limit->cost = cost;
    if (cost) CheckSizeCost(reader_, fields_, *limit);
    ReadGivenLimits(reader_, fields_, *limit);
    if (fields_.any_reported()) return;
    CheckGivenNumbers(*limit);
    const std::string_view length = LengthOfUnit(words.period);
    if (!length.empty() && limit->limit.algorithm() != Algorithm::kFixedWindow &&
        fields_.has(Word::kPeriod)) {
      reader_.Warn(fields_.mark(Word::kPeriod), std::string(length),
                   "with algorithm: fixed_window it ends with the calendar's, in UTC");
    }
    rule_.limits.push_back(*limit);
  }

  // The number that a request brings cannot be meant for two limits.
  void CheckGivenNumbers(const RuleLimit& limit) {
    const auto takes_numbers = [](const RuleLimit& l) {
      return l.given != nullptr && l.given->max.has_value();
    };
    if (!takes_numbers(limit) ||
        std::none_of(rule_.limits.begin(), rule_.limits.end(), takes_numbers)) {
      return;
    }
    reader_.Report(fields_, Word::kMax, "two limits of this rule have max",
                   "a request brings one number; plans can give each limit its own");
  }

  std::optional<Algorithm> ReadAlgorithm() {
    return OneOf(Word::kAlgorithm, kAlgorithms, {kConcurrency});
  }

  void ReadPeriod(LimitWords& words) {
    const std::string_view unit_text = reader_.Text(fields_, Word::kUnit);
    if (fields_.has(Word::kPeriod)) {
      if (fields_.has(Word::kUnit)) {
        return reader_.Report(fields_, Word::kPeriod, "should not specify both unit and period",
                              "leave out one of them");
      }
      const std::string_view text = reader_.Text(fields_, Word::kPeriod);
      if (fields_.reported(Word::kPeriod)) return;
      const auto period = ParsePeriod(text);
      if (period.ok()) {
        words.period = *period;
        return;
      }
      return reader_.Report(
          fields_, Word::kPeriod,
          fmt::format("invalid period: {}", std::string(period.status().message())),
          "a period is a unit (minute, month, …) or a duration such as 20s");
    }
    if (fields_.reported(Word::kUnit) || fields_.reported(Word::kPeriod)) return;
    const std::optional<Unit> unit = UnitByName(unit_text);
    if (unit) {
      words.period.length = PeriodOf(*unit);
      return;
    }
    std::string hint =
        DidYouMean(unit_text, {"second", "minute", "hour", "day", "week", "month", "year"});
    if (hint.empty())
      hint = "unit: second, minute, hour, day, week, month or year; other lengths as period: 20s";
    reader_.Report(fields_, Word::kUnit,
                   fmt::format("invalid rate limit unit '{}'", Shown(unit_text)), std::move(hint));
  }

  // Reads the words for shared stores, which apply to the whole rule.
  void ReadStoreWords() {
    std::optional<Sharing> sharing = OneOf(Word::kSharing, kSharings);
    const bool locked = SaysLock();
    if (locked || reader_.Truth(fields_, Word::kStrict, "true, false or lock")) {
      if (sharing && *sharing != Sharing::kStrict) {
        reader_.Report(fields_, Word::kStrict,
                       fmt::format("strict: {} contradicts sharing", locked ? "lock" : "true"),
                       "leave out one of them");
      }
      sharing = locked ? Sharing::kLocked : Sharing::kStrict;
    }
    Agree(fields_.has(Word::kSharing) ? Word::kSharing : Word::kStrict, sharing, rule_.sharing);
    const auto failure = OneOf(Word::kOnStoreFailure, kFailures);
    Agree(Word::kOnStoreFailure, failure, rule_.on_store_failure);
    const bool contradicts = rule_.sharing == Sharing::kLocked && rule_.on_store_failure &&
                             *rule_.on_store_failure != OnStoreFailure::kDeny;
    if (contradicts && (sharing || failure)) {
      reader_.Report(
          fields_, failure ? Word::kOnStoreFailure : Word::kStrict,
          "on_store_failure contradicts strict: lock, which refuses what it cannot decide",
          "leave out on_store_failure, or strict: lock");
    }
    Agree(Word::kFallbackShare, ReadShare(), rule_.fallback_share_ppm);
  }

  bool SaysLock() const {
    const DocumentNode* const node = fields_.value(Word::kStrict);
    return node != nullptr && node->kind == NodeKind::kScalar && node->text == "lock";
  }

  template <typename Value>
  void Agree(Word word, const std::optional<Value>& said, std::optional<Value>& kept) {
    if (!said) return;
    if (kept && *kept != *said) {
      return reader_.Report(
          fields_, word,
          fmt::format("{} differs from that of another limit of this rule", TextOf(word)),
          "all limits of a rule share one value");
    }
    kept = said;
  }

  std::optional<uint32_t> ReadShare() {
    if (!fields_.has(Word::kFallbackShare)) return std::nullopt;
    const std::string_view text = reader_.Text(fields_, Word::kFallbackShare);
    if (fields_.reported(Word::kFallbackShare)) return std::nullopt;
    if (const auto share = ShareByText(text)) return share;
    reader_.Report(
        fields_, Word::kFallbackShare, fmt::format("invalid fallback_share '{}'", Shown(text)),
        "the share of the limit that one machine may use alone: above 0, at most 1, such as 0.25");
    return std::nullopt;
  }

  FieldReader& reader_;
  Fields& fields_;
  const LimitFields inherited_;
  Rule& rule_;
};

bool HasStoreWord(const Fields& fields) {
  for (const Word word :
       {Word::kSharing, Word::kStrict, Word::kOnStoreFailure, Word::kFallbackShare})
    if (fields.has(word)) return true;
  return false;
}

}  // namespace

bool ReadLimit(FieldReader& reader, std::span<const DocumentNode* const> mappings, LimitForm form,
               LimitFields inherited, Rule& rule) {
  Fields fields = reader.Read(mappings, Context::kLimit);
  LimitReader(reader, fields, inherited, rule).Read(form);
  return HasStoreWord(fields);
}

}  // namespace headgate::rule::read
