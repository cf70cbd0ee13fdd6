// Loads rule files and one-liners into one immutable RuleTree, or returns all their problems.
//
// The format and its loading follow Envoy's rate limit service, with words of Headgate's own in
// addition (docs/reference/rules.md). If there is a problem anywhere, nothing is loaded: rules are
// complete or absent.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headgate/rule/problem.h"
#include "headgate/rule/rule_tree.h"

namespace headgate::rule::read {

struct RuleFile {
  std::string name;  // for messages
  std::string text;
  // If set, the text is not a rule file but the limit of this API key (key_limit.h).
  std::optional<std::string> limit_of{};
};

enum class MergeDomains : uint8_t { kNo, kYes };

struct LoadOptions {
  // Whether several files may define the same domain. Their descriptors are then combined, in the
  // order of the files.
  MergeDomains merge_domains = MergeDomains::kNo;
  // Rules of one line each (one_liner.h). They are added to the domain `default` after the files,
  // even if a file defines that domain too.
  std::vector<std::string> one_liners{};
};

struct LoadResult {
  std::shared_ptr<const RuleTree> rules;  // null if there are problems
  std::vector<Problem> problems;          // of all files, in their order
  std::vector<Problem> warnings;          // rules that load but are probably not intended

  bool ok() const { return rules != nullptr; }
};

LoadResult LoadRules(std::span<const RuleFile> files, const LoadOptions& options = {});

}  // namespace headgate::rule::read
