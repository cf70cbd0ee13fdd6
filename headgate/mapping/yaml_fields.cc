#include "headgate/mapping/yaml_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "headgate/mapping/hints.h"
#include "headgate/rule/read/scalar.h"

namespace headgate::mapping {

using rule::read::DocumentNode;
using rule::read::NodeKind;
using rule::read::ScalarType;

YamlFields::YamlFields(const DocumentNode& node, std::string_view what,
                       std::span<const std::string_view> words, rule::ProblemList& problems)
    : node_(node), what_(what), problems_(problems) {
  std::set<std::string_view> seen;
  for (size_t i = 0; i + 1 < node.children.size(); i += 2) {
    const DocumentNode& key = *node.children[i];
    if (key.kind != NodeKind::kScalar) {
      problems_.Add(key.mark, fmt::format("a word of {} is not a text", what_),
                    fmt::format("{} has: {}", what_, fmt::join(words, ", ")));
    } else if (std::find(words.begin(), words.end(), key.text) == words.end()) {
      has_other_words_ = true;
      std::string hint(HintForWord(key.text));
      if (hint.empty())
        hint =
            rule::DidYouMean(key.text, std::vector<std::string_view>(words.begin(), words.end()));
      if (hint.empty()) hint = fmt::format("{} has: {}", what_, fmt::join(words, ", "));
      problems_.Add(key.mark, fmt::format("{} has no word '{}'", what_, rule::Shown(key.text)),
                    std::move(hint));
    } else if (!seen.insert(key.text).second) {
      problems_.Add(key.mark, fmt::format("'{}' is given twice", key.text),
                    "remove one of them; a list holds several values");
    }
  }
}

const DocumentNode* YamlFields::Find(std::string_view word) const {
  for (size_t i = 0; i + 1 < node_.children.size(); i += 2) {
    const DocumentNode& key = *node_.children[i];
    if (key.kind == NodeKind::kScalar && key.text == word) return node_.children[i + 1];
  }
  return nullptr;
}

rule::Mark YamlFields::mark(std::string_view word) const {
  const DocumentNode* const value = Find(word);
  return value == nullptr ? node_.mark : value->mark;
}

void YamlFields::Report(std::string_view word, std::string message, std::string hint) {
  problems_.Add(mark(word), std::move(message), std::move(hint));
}

std::optional<std::string> YamlFields::Text(std::string_view word) {
  const DocumentNode* const value = Find(word);
  if (value == nullptr) return std::nullopt;
  if (value->kind != NodeKind::kScalar || value->text.empty()) {
    Report(word, fmt::format("'{}' of {} is not a text", word, what_),
           fmt::format("write a word behind it: {}: \"…\"", word));
    return std::nullopt;
  }
  if (HasQuotes(*value)) return std::nullopt;
  return std::string(value->text);
}

bool YamlFields::HasQuotes(const DocumentNode& node) {
  if (!HasTypographicQuotes(node.text)) return false;
  problems_.Add(
      node.mark,
      fmt::format("{} has typographic quotes, which would be a part of it", rule::Shown(node.text)),
      "write straight quotes: \" or '");
  return true;
}

bool YamlFields::is_empty_list(std::string_view word) const {
  const DocumentNode* const value = Find(word);
  return value != nullptr && value->kind == NodeKind::kSequence && value->children.empty();
}

std::optional<std::string> YamlFields::Name(
    std::string_view word, std::optional<Impossible> (*check)(std::string_view name)) {
  auto name = Text(word);
  if (!name) return std::nullopt;
  if (auto impossible = check(*name)) {
    Report(word, std::move(impossible->message), std::move(impossible->hint));
    return std::nullopt;
  }
  return name;
}

bool YamlFields::Truth(std::string_view word, bool otherwise, std::string_view hint) {
  const DocumentNode* const value = Find(word);
  if (value == nullptr) return otherwise;
  if (value->kind == NodeKind::kScalar) {
    const rule::read::Scalar scalar = rule::read::Resolve(*value);
    if (scalar.type == ScalarType::kBool) return scalar.truth;
  }
  Report(word, fmt::format("'{}' of {} is neither true nor false", word, what_),
         hint.empty() ? fmt::format("write {0}: true or {0}: false", word) : std::string(hint));
  return otherwise;
}

std::optional<uint64_t> YamlFields::Number(std::string_view word, uint64_t min, uint64_t max,
                                           std::string_view hint) {
  const DocumentNode* const value = Find(word);
  if (value == nullptr) return std::nullopt;
  if (value->kind == NodeKind::kScalar) {
    const rule::read::Scalar scalar = rule::read::Resolve(*value);
    if (scalar.type == ScalarType::kInt && scalar.number >= 0 &&
        static_cast<uint64_t>(scalar.number) >= min && static_cast<uint64_t>(scalar.number) <= max)
      return static_cast<uint64_t>(scalar.number);
  }
  Report(word, fmt::format("'{}' of {} is not a whole number from {} to {}", word, what_, min, max),
         std::string(hint));
  return std::nullopt;
}

std::vector<PlacedText> YamlFields::Texts(std::string_view word) {
  std::vector<PlacedText> texts;
  const DocumentNode* const value = Find(word);
  if (value == nullptr) return texts;
  const auto add = [&](const DocumentNode& node) {
    if (node.kind == NodeKind::kScalar && !node.text.empty()) {
      if (!HasQuotes(node)) texts.push_back({.text = std::string(node.text), .mark = node.mark});
    } else {
      problems_.Add(node.mark,
                    fmt::format("'{}' of {} holds something that is not a text", word, what_),
                    fmt::format("write one text, or a list of texts: {}: [\"…\", \"…\"]", word));
    }
  };
  if (value->kind == NodeKind::kSequence) {
    for (const DocumentNode* item : value->children) add(*item);
    if (texts.empty() && value->children.empty())
      Report(word, fmt::format("'{}' of {} is empty", word, what_), "leave it out");
  } else {
    add(*value);
  }
  return texts;
}

std::vector<const DocumentNode*> YamlFields::Mappings(std::string_view word) {
  std::vector<const DocumentNode*> mappings;
  const DocumentNode* const value = Find(word);
  if (value == nullptr) return mappings;
  if (value->kind != NodeKind::kSequence) {
    Report(word, fmt::format("'{}' of {} is not a list", word, what_),
           "begin each item with \"- \"");
    return mappings;
  }
  for (const DocumentNode* item : value->children) {
    if (item->kind == NodeKind::kMapping) {
      mappings.push_back(item);
    } else {
      problems_.Add(item->mark, fmt::format("an item of '{}' is not a mapping", word),
                    "an item is written \"- word: value\"");
    }
  }
  return mappings;
}

const DocumentNode* YamlFields::Mapping(std::string_view word) {
  const DocumentNode* const value = Find(word);
  if (value == nullptr || value->kind == NodeKind::kMapping) return value;
  Report(word, fmt::format("'{}' of {} is not a mapping", word, what_),
         fmt::format("write words and their values under it: {}: {{word: value}}", word));
  return nullptr;
}

std::optional<size_t> YamlFields::Choice(std::string_view word,
                                         std::span<const std::string_view> choices) {
  const auto text = Text(word);
  if (!text) return std::nullopt;
  const auto found = std::find(choices.begin(), choices.end(), *text);
  if (found != choices.end()) return static_cast<size_t>(found - choices.begin());
  Report(word, fmt::format("'{}' cannot be '{}'", word, rule::Shown(*text)),
         fmt::format("it is one of {}", fmt::join(choices, ", ")));
  return std::nullopt;
}

}  // namespace headgate::mapping
