// Explains why a descriptor gets its limit, or none: the walk down the tree, step by step, with the
// alternatives and why they were not taken. For people; RuleTree::Find does the actual matching.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/rule/rule_tree.h"

namespace headgate::rule {

enum class MatchedBy : uint8_t { kExact, kPattern, kKey, kNothing };

// Describes the kind of match in words: "the key alone, for every value".
std::string_view Describe(MatchedBy matched_by);

// Whether the limit has 0 requests.
bool NothingPasses(const RuleLimit& limit);

// One entry of the descriptor, at the level of the tree that the previous entries led to.
struct ExplainedStep {
  std::string entry;  // such as "api_key=gold-17"
  MatchedBy matched_by = MatchedBy::kNothing;
  std::string node;  // the text that matched, such as "api_key_gold-*"
  // Whether the node has a limit; it applies only at the descriptor's last entry.
  bool has_limit = false;
  std::vector<std::string> others;  // the alternatives that were not taken, each with the reason
};

struct Explanation {
  std::string domain;
  bool domain_known = false;
  std::vector<ExplainedStep> steps;  // as far as the walk got
  const Rule* rule = nullptr;        // owned by the tree; null: no limit applies
  std::string verdict;               // the reason in one sentence
  std::string bucket;  // identifies the rule's bucket for this descriptor; empty without a limit
};

Explanation Explain(const RuleTree& rules, std::string_view domain, std::span<const Entry> entries);

// The explanation as lines of text.
std::string Describe(const Explanation& explanation);

}  // namespace headgate::rule
