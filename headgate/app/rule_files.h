// Rules as commands name them: files, directories, and rules as text.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "headgate/app/console.h"
#include "headgate/rule/load.h"

namespace headgate::app {

rule::LoadResult LoadNamed(std::span<const rule::RuleFile> files, const std::vector<std::string>& one_liners,
                           bool merge_domains);

struct RulesFromPaths {
  rule::LoadResult result;
  std::vector<std::string> unreadable;  // a sentence each; then nothing was loaded
  size_t file_count = 0;
};

// Reads and loads what `paths` name, once.
RulesFromPaths LoadPaths(const std::vector<std::string>& paths, const std::vector<std::string>& one_liners,
                         bool merge_domains);

// One error for each problem.
void SayProblems(const RulesFromPaths& loaded, const Console& console);

}  // namespace headgate::app
