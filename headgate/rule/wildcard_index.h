// The patterns of one level of the tree: which is the first, in file order, that matches an entry?
//
// A pattern is text with one or more `*`, each of which stands for any text, none included.
// Patterns are sorted by what stands before their first `*`, so that only those whose literal
// prefix the entry begins with are tried:
//
//   prefixes, sorted          each knows the longest other prefix that it begins with
//   "api_key_"                -
//   "api_key_gold-"           -> "api_key_"
//   "path_/search"            -
//
// The last prefix not after the entry, or one that it leads to, is the longest prefix of the entry;
// all the others are behind it in the same chain.
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
  uint32_t target;                   // what it leads to
  std::vector<std::string> middles;  // literals between the first `*` and the last
  std::string suffix;                // after the last `*`
  size_t prefix_size;                // before the first `*`
  size_t literal_size;               // of all together

  // Whether the rest matches where the prefix does.
  bool MatchesAfterPrefix(const JoinedText& entry) const;
};

class WildcardIndex {
 public:
  // `patterns` in file order; each has a `*`.
  struct Source {
    std::string_view text;
    uint32_t target;
  };
  explicit WildcardIndex(const std::vector<Source>& patterns);

  // Null where none matches.
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
