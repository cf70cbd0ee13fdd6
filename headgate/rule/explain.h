// Why a descriptor gets the limit it gets, or none: the walk down the tree, step by step, with what
// stood by and why it was not taken. For people; matching itself is RuleTree::Find.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/rule/rule_tree.h"

namespace headgate::rule {

enum class MatchedBy : uint8_t { kExact, kPattern, kKey, kNothing };

// In words: "the key alone, for every value".
std::string_view Describe(MatchedBy matched_by);

// A limit of 0 requests.
bool NothingPasses(const RuleLimit& limit);

// One entry of the descriptor, at the level that the entries before it led to.
struct ExplainedStep {
  std::string entry;  // "api_key=gold-17"
  MatchedBy matched_by = MatchedBy::kNothing;
  std::string node;        // the text that matched, such as "api_key_gold-*"
  bool has_limit = false;  // the node has one (which applies only at the descriptor's last entry)
  std::vector<std::string> others;  // what was not taken, each with the reason
};

struct Explanation {
  std::string domain;
  bool domain_known = false;
  std::vector<ExplainedStep> steps;  // as far as the walk came
  const Rule* rule = nullptr;        // of the tree; null: no limit applies
  std::string verdict;               // the reason in one sentence
  std::string bucket;                // what tells the rule's buckets apart; empty without a limit
};

Explanation Explain(const RuleTree& rules, std::string_view domain, std::span<const Entry> entries);

// The explanation as lines of text.
std::string Describe(const Explanation& explanation);

}  // namespace headgate::rule
