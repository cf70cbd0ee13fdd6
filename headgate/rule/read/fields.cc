#include "headgate/rule/read/fields.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "headgate/rule/read/scalar.h"

namespace headgate::rule::read {
namespace {

enum class Shape : uint8_t { kLeaf, kMapping, kList, kFree };

struct WordTraits {
  std::string_view text;
  uint8_t contexts;  // bits of Context
  bool ours;         // not a word of Envoy's rate limit service
  Shape shape = Shape::kLeaf;
};
constexpr uint8_t kFile = static_cast<uint8_t>(Context::kFile);
constexpr uint8_t kDescriptor = static_cast<uint8_t>(Context::kDescriptor);
constexpr uint8_t kLimit = static_cast<uint8_t>(Context::kLimit);
constexpr uint8_t kReplaced = static_cast<uint8_t>(Context::kReplaced);
constexpr uint8_t kRollout = static_cast<uint8_t>(Context::kRollout);
constexpr uint8_t kCost = static_cast<uint8_t>(Context::kCost);
constexpr uint8_t kCount = static_cast<uint8_t>(Context::kCount);

constexpr std::array<WordTraits, kWordCount> kWords{{
    {"algorithm", kLimit, true},
    {"align", kLimit, true},
    {"all_or_nothing", kFile, true},
    {"block", kLimit, true, Shape::kFree},
    {"burst", kLimit, true},
    {"cost", kLimit, true, Shape::kMapping},
    {"count", kLimit, true, Shape::kMapping},
    {"count_denied", kLimit, true},
    {"descriptors", kFile | kDescriptor, false, Shape::kList},
    {"detailed_metric", kDescriptor, false},
    {"domain", kFile, false},
    {"fallback_share", kLimit, true, Shape::kFree},
    {"grpc_status", kCount, true, Shape::kFree},
    {"key", kDescriptor, false},
    {"max", kLimit, true},
    {"max_delay", kLimit, true},
    {"metadata", kDescriptor, false, Shape::kFree},
    {"name", kLimit | kReplaced, false},
    {"of", kCost, true},
    {"on_store_failure", kLimit, true},
    {"overdraw", kLimit, true},
    {"per", kCost, true},
    {"percent", kRollout, true, Shape::kFree},
    {"period", kLimit, true},
    {"plans", kLimit, true, Shape::kFree},
    {"queue", kLimit, true},
    {"quota_mode", kDescriptor, false},
    {"quota_unit", kDescriptor, true},
    {"rate_limit", kDescriptor | kRollout, false, Shape::kMapping},
    {"rate_limit_fields", kDescriptor, true},
    {"rate_limits", kDescriptor | kRollout, true, Shape::kList},
    {"refusal", kDescriptor, true, Shape::kFree},
    {"replaces", kLimit, false, Shape::kList},
    {"requests", kLimit, true},
    {"requests_per_unit", kLimit, false},
    {"reserve", kCost, true},
    {"rollout", kDescriptor, true, Shape::kMapping},
    {"shadow", kRollout, true},
    {"shadow_mode", kDescriptor, false},
    {"share_threshold", kDescriptor, false},
    {"sharing", kLimit, true},
    {"status", kCount, true, Shape::kFree},
    {"strict", kLimit, true},
    {"timezone", kLimit, true},
    {"ttl", kLimit, true},
    {"unit", kLimit, false},
    {"unlimited", kLimit, false},
    {"value", kDescriptor, false},
    {"value_to_metric", kDescriptor, false},
}};
static_assert(std::is_sorted(kWords.begin(), kWords.end(),
                             [](const WordTraits& a, const WordTraits& b) {
                               return a.text < b.text;
                             }));

const WordTraits& TraitsOf(Word word) { return kWords[static_cast<size_t>(word)]; }

std::optional<Word> WordByText(std::string_view text) {
  const auto found =
      std::lower_bound(kWords.begin(), kWords.end(), text,
                       [](const WordTraits& word, std::string_view t) { return word.text < t; });
  if (found == kWords.end() || found->text != text) return std::nullopt;
  return static_cast<Word>(found - kWords.begin());
}

std::string_view NameOf(uint8_t contexts) {
  if ((contexts & kLimit) != 0) return "under rate_limit";
  if ((contexts & kDescriptor) != 0) return "in a descriptor, next to its key";
  if ((contexts & kRollout) != 0) return "under rollout";
  if ((contexts & kCost) != 0) return "under cost";
  if ((contexts & kCount) != 0) return "under count";
  return "at the top of the file, next to domain";
}

// The hint for a fraction, or for a number that is too large.
std::string NumberHint(Word word) {
  if (word == Word::kRequestsPerUnit) {
    return "write a whole number, and a longer unit or period for less than one: 1 with period: 2s "
           "is half of one a "
           "second";
  }
  if (word == Word::kBurst || word == Word::kRequests) return "write a whole number";
  return "put the value in quotes if it is meant as text";
}

// The hint for a misspelt key: the nearest word that is allowed here, or else any word.
std::string KeyHint(std::string_view text) {
  std::vector<std::string_view> words;
  for (const WordTraits& word : kWords) words.push_back(word.text);
  std::string hint = DidYouMean(text, words);
  return hint.empty() ? "see docs/reference/rules.md for the words of a rule file" : hint;
}

}  // namespace

bool Fields::has_ours() const {
  for (size_t i = 0; i < kWordCount; ++i) {
    if (kWords[i].ours && (values_[i] != nullptr || reported_[i])) return true;
  }
  return false;
}

std::string_view TextOf(Word word) { return TraitsOf(word).text; }

Fields FieldReader::Read(const DocumentNode& mapping, Context context) {
  const DocumentNode* const one = &mapping;
  return Read(std::span(&one, 1), context);
}

Fields FieldReader::Read(std::span<const DocumentNode* const> mappings, Context context) {
  Fields fields(mappings.back()->mark);
  for (const DocumentNode* mapping : mappings) {
    for (size_t i = 0; i + 1 < mapping->children.size(); i += 2) {
      ReadPair(fields, *mapping->children[i], *mapping->children[i + 1], context);
    }
  }
  // Checked last, so that only the value that counts is checked if a word occurs twice.
  for (size_t i = 0; i < kWordCount; ++i) {
    const auto word = static_cast<Word>(i);
    if (fields.has(word) && !CheckValue(*fields.value(word), word)) {
      Forget(fields, word);
    }
  }
  return fields;
}

void FieldReader::ReadPair(Fields& fields, const DocumentNode& key, const DocumentNode& value,
                           Context context) {
  const std::optional<Word> word = CheckWord(key);
  if (!word || !CheckContext(fields, key, *word, context)) return;
  fields.values_[Fields::Index(*word)] = &value;
  if (*word != Word::kRateLimit) return;
  std::vector<const DocumentNode*>& all = fields.rate_limits_;
  if (value.kind != NodeKind::kMapping || (!all.empty() && all.back()->kind != NodeKind::kMapping))
    all.clear();
  all.push_back(&value);
}

std::optional<Word> FieldReader::CheckWord(const DocumentNode& key) {
  if (full()) return std::nullopt;
  const bool is_text = key.kind == NodeKind::kScalar && Resolve(key).type == ScalarType::kString;
  if (!is_text) {
    Report(key.mark, fmt::format("config error, key is not of type string: {}", GoText(key)),
           "keys are text; put the key in quotes if it is meant as text");
    return std::nullopt;
  }
  const std::optional<Word> word = WordByText(key.text);
  if (!word)
    Report(key.mark, fmt::format("config error, unknown key '{}'", Shown(key.text)),
           KeyHint(key.text));
  return word;
}

bool FieldReader::CheckContext(Fields& fields, const DocumentNode& key, Word word,
                               Context context) {
  const WordTraits& traits = TraitsOf(word);
  if ((traits.contexts & static_cast<uint8_t>(context)) != 0) return true;
  std::string hint = fmt::format("'{}' belongs {}", traits.text, NameOf(traits.contexts));
  if (traits.ours) {
    fields.reported_.set(Fields::Index(word));
    Report(key.mark, fmt::format("config error, misplaced key '{}'", traits.text), std::move(hint));
  } else {
    Warn(key.mark, fmt::format("'{}' does nothing here", traits.text), std::move(hint));
  }
  return false;
}

bool FieldReader::CheckValue(const DocumentNode& value, Word word) {
  if (TraitsOf(word).shape == Shape::kFree) return true;
  if (value.kind == NodeKind::kSequence) {
    // The items of lists that only Headgate has are checked when the list is read.
    return TraitsOf(word).shape == Shape::kList || CheckItems(value);
  }
  if (value.kind == NodeKind::kMapping) {
    return TraitsOf(word).shape == Shape::kMapping || CheckAnyMapping(value);
  }
  switch (Resolve(value).type) {
    case ScalarType::kFloat:
    case ScalarType::kUnsigned:
      Report(
          value.mark,
          fmt::format("error checking config: {} is {}, a fraction or a number that is too large",
                      TraitsOf(word).text, Shown(value.text)),
          NumberHint(word));
      return false;
    case ScalarType::kMistagged:
      Report(value.mark,
             fmt::format("error loading config file: yaml: cannot decode `{}` as its tag says",
                         Shown(value.text)),
             "leave out the tag");
      return false;
    default:
      return true;
  }
}

bool FieldReader::CheckItems(const DocumentNode& list) {
  bool good = true;
  for (const DocumentNode* item : list.children) {
    if (item->kind == NodeKind::kMapping) {
      good = CheckAnyMapping(*item) && good;
    } else {
      good = false;
      Report(item->mark,
             fmt::format("config error, yaml file contains list of type other than map: {}",
                         GoText(*item)),
             "each item of a list is a mapping, such as \"- key: api_key\"");
    }
  }
  return good;
}

// Checks a mapping that is not allowed in its place. Reports its problems first, because the
// service's loader does.
bool FieldReader::CheckAnyMapping(const DocumentNode& mapping) {
  bool good = true;
  for (size_t i = 0; i + 1 < mapping.children.size(); i += 2) {
    const std::optional<Word> word = CheckWord(*mapping.children[i]);
    good = word && CheckValue(*mapping.children[i + 1], *word) && good;
  }
  return good;
}

void FieldReader::Forget(Fields& fields, Word word) {
  fields.reported_.set(Fields::Index(word));
  fields.values_[Fields::Index(word)] = nullptr;
}

void FieldReader::Report(Fields& fields, Word word, std::string message, std::string hint) {
  Report(fields.mark(word), std::move(message), std::move(hint));
  Forget(fields, word);
}

void FieldReader::ReportType(const DocumentNode& node, std::string_view go_type, std::string hint) {
  std::string value;
  if (node.kind == NodeKind::kScalar) {
    value = node.text.size() > 10 ? fmt::format(" `{}...`", node.text.substr(0, 7))
                                  : fmt::format(" `{}`", node.text);
  }
  Report(node.mark,
         fmt::format("error loading config file: yaml: unmarshal errors: line {}: cannot unmarshal "
                     "{}{} into {}",
                     node.mark.line, TypeName(node), value, go_type),
         std::move(hint));
}

std::string_view FieldReader::Text(Fields& fields, Word word) {
  const DocumentNode* const node = fields.value(word);
  if (node == nullptr || IsNull(*node)) return {};
  if (node->kind == NodeKind::kScalar) return node->text;
  ReportType(*node, "string", fmt::format("'{}' is one text", TextOf(word)));
  Forget(fields, word);
  return {};
}

bool FieldReader::Truth(Fields& fields, Word word, std::string_view choices) {
  const DocumentNode* const node = fields.value(word);
  if (node == nullptr || IsNull(*node)) return false;
  if (node->kind == NodeKind::kScalar) {
    const Scalar scalar = Resolve(*node);
    if (scalar.type == ScalarType::kBool) return scalar.truth;
  }
  ReportType(*node, "bool", fmt::format("'{}' is {}, without quotes", TextOf(word), choices));
  Forget(fields, word);
  return false;
}

uint32_t FieldReader::Unsigned32(Fields& fields, Word word) {
  return static_cast<uint32_t>(
      Number(fields, word, std::numeric_limits<uint32_t>::max(), "uint32"));
}

uint64_t FieldReader::Unsigned64(Fields& fields, Word word) {
  return Number(fields, word, std::numeric_limits<int64_t>::max(), "uint64");
}

uint64_t FieldReader::Number(Fields& fields, Word word, uint64_t most, std::string_view go_type) {
  const DocumentNode* const node = fields.value(word);
  if (node == nullptr || IsNull(*node)) return 0;
  if (node->kind == NodeKind::kScalar) {
    const Scalar scalar = Resolve(*node);
    if (scalar.type == ScalarType::kInt && scalar.number >= 0 &&
        static_cast<uint64_t>(scalar.number) <= most) {
      return static_cast<uint64_t>(scalar.number);
    }
  }
  ReportType(
      *node, go_type,
      fmt::format("'{}' is a whole number from 0 to {}, without quotes", TextOf(word), most));
  Forget(fields, word);
  return 0;
}

std::span<const DocumentNode* const> FieldReader::List(Fields& fields, Word word,
                                                       std::string_view go_type) {
  const DocumentNode* const node = fields.value(word);
  if (node == nullptr || IsNull(*node)) return {};
  if (node->kind != NodeKind::kSequence) {
    ReportType(*node, go_type,
               fmt::format("'{}' is a list: begin each item with \"- \"", TextOf(word)));
    fields.reported_.set(Fields::Index(word));
    fields.values_[Fields::Index(word)] = nullptr;
    return {};
  }
  for (const DocumentNode* item : node->children) {
    if (item->kind == NodeKind::kMapping) continue;
    Report(item->mark,
           fmt::format("config error, yaml file contains list of type other than map: {}",
                       GoText(*item)),
           "each item of a list is a mapping, such as \"- key: api_key\"");
    fields.reported_.set(Fields::Index(word));
  }
  return node->children;
}

}  // namespace headgate::rule::read
