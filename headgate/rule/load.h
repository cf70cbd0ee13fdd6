// Rule files and one-liners as text -> one immutable RuleTree, or everything that is wrong with
// them.
//
// The format is that of Envoy's rate limit service, loaded as it loads it, with our own words
// beside (docs/reference/ rules.md). One problem anywhere and nothing is loaded: rules are whole,
// or they are not.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headgate/rule/problem.h"
#include "headgate/rule/rule_tree.h"

namespace headgate::rule {

struct RuleFile {
  std::string name;  // for messages
  std::string text;
};

enum class MergeDomains : uint8_t { kNo, kYes };

struct LoadOptions {
  // Whether several files may have one domain; their descriptors are put together, in the order of
  // the files.
  MergeDomains merge_domains = MergeDomains::kNo;
  // Rules in one line each (one_liner.h), added to the domain `default` after the files; that is no
  // doubled domain.
  std::vector<std::string> one_liners{};
};

struct LoadResult {
  std::shared_ptr<const RuleTree> rules;  // null where there are problems
  std::vector<Problem> problems;          // of all files, in their order
  std::vector<Problem> warnings;          // what loads but is hardly meant

  bool ok() const { return rules != nullptr; }
};

LoadResult LoadRules(std::span<const RuleFile> files, const LoadOptions& options = {});

}  // namespace headgate::rule
