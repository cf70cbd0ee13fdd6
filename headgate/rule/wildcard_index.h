// The patterns of one level of the tree. Finds the first pattern, in file order, that matches an
// entry.
//
// A pattern is text with one or more `*`, each of which stands for any text, including none.
// Patterns are sorted by their prefix, the text before the first `*`. Only patterns whose prefix
// the entry begins with are tried:
//
//   prefixes, sorted          each knows the longest other prefix that it begins with
//   "api_key_"                -
//   "api_key_gold-"           -> "api_key_"
//   "path_/search"            -
//
// All prefixes of an entry are in one chain: the chain of the last prefix that does not sort after
// the entry. A search follows this chain; the first match in it is the longest.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/rule/joined_text.h"

namespace headgate::rule {

// Whether `text` has a `*`.
bool IsPattern(std::string_view text);

struct Pattern {
  std::string text;
  uint32_t target;                   // the index that the caller gave to this pattern
  std::vector<std::string> middles;  // literals between the first `*` and the last
  std::string suffix;                // after the last `*`
  size_t prefix_size;                // before the first `*`
  size_t literal_size;               // total size of prefix, middles and suffix

  // Whether the rest of the pattern matches an entry whose beginning matches the prefix.
  bool MatchesAfterPrefix(const JoinedText& entry) const;
};

class WildcardIndex {
 public:
  // `patterns` must be in file order, and each must have a `*`.
  struct Source {
    std::string_view text;
    uint32_t target;
  };
  explicit WildcardIndex(const std::vector<Source>& patterns);

  // Null if no pattern matches.
  const Pattern* FirstMatch(const JoinedText& entry) const;

  // In file order.
  const std::vector<Pattern>& patterns() const { return patterns_; }

 private:
  struct Prefix {
    std::string text;
    size_t shorter;                  // the longest other prefix that it begins with, or kNone
    std::vector<uint32_t> patterns;  // in file order
  };
  static constexpr size_t kNone = ~size_t{0};

  std::vector<Pattern> patterns_;
  std::vector<Prefix> prefixes_;
};

}  // namespace headgate::rule
