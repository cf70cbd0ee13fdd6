// Reads one YAML mapping of a mapping file: its words, their values, and the problems with them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/mapping/possible.h"
#include "headgate/rule/problem.h"
#include "headgate/rule/read/document.h"

namespace headgate::mapping {

// A value with its place.
struct PlacedText {
  std::string text;
  rule::Mark mark;
};

class YamlFields {
 public:
  // Reports words that are not allowed and words that occur twice. `node` must be a mapping.
  // `what` names the mapping in messages: "a mapping". All arguments must outlive this object.
  YamlFields(const rule::read::DocumentNode& node, std::string_view what,
             std::span<const std::string_view> words, rule::ProblemList& problems);

  bool has(std::string_view word) const { return Find(word) != nullptr; }
  // Whether there are words that are not allowed, which is reported.
  bool has_other_words() const { return has_other_words_; }
  bool is_empty_list(std::string_view word) const;
  rule::Mark mark(std::string_view word) const;
  rule::Mark mark() const { return node_.mark; }

  // If the value is of a wrong kind, it is reported and counts as absent.
  std::optional<std::string> Text(std::string_view word);
  // A text that `check` accepts: it returns why a name is impossible, or nothing.
  std::optional<std::string> Name(std::string_view word,
                                  std::optional<Impossible> (*check)(std::string_view name));
  // `hint`: for a value that is neither true nor false; empty: the usual hint.
  bool Truth(std::string_view word, bool otherwise, std::string_view hint = {});
  std::optional<uint64_t> Number(std::string_view word, uint64_t min, uint64_t max,
                                 std::string_view hint);
  // One text, or a list of texts.
  std::vector<PlacedText> Texts(std::string_view word);
  // The mappings of a list.
  std::vector<const rule::read::DocumentNode*> Mappings(std::string_view word);
  const rule::read::DocumentNode* Mapping(std::string_view word);
  // The index of the word's text in `choices`; empty if the word is absent or is none of them.
  std::optional<size_t> Choice(std::string_view word, std::span<const std::string_view> choices);

  // Every problem has a hint: what to write instead.
  void Report(std::string_view word, std::string message, std::string hint);

 private:
  const rule::read::DocumentNode* Find(std::string_view word) const;
  // Reports a text with typographic quotes around it.
  bool HasQuotes(const rule::read::DocumentNode& node);

  const rule::read::DocumentNode& node_;
  const std::string_view what_;
  rule::ProblemList& problems_;
  bool has_other_words_ = false;
};

}  // namespace headgate::mapping
