// Loads the rules that commands name: files, directories, and rules given as text.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/app/settings/configuration.h"
#include "headgate/app/settings/console.h"
#include "headgate/rule/read/load.h"

namespace headgate::app {

rule::read::LoadResult LoadNamed(std::span<const rule::read::RuleFile> files,
                                 const std::vector<std::string>& one_liners, bool merge_domains);

struct RulesFromPaths {
  rule::read::LoadResult result;
  size_t file_count = 0;  // 0 if one of them could not be read; then nothing was loaded
  bool awaited = false;   // the only problems are directories without a rule file, which a server
                          // waits for
};

// Reads and loads the rules of `paths`, once. A file of mappings is one problem that says so.
RulesFromPaths LoadPaths(const std::vector<std::string>& paths,
                         const std::vector<std::string>& one_liners, bool merge_domains);
// The same, with progress on the console.
RulesFromPaths LoadPaths(const std::vector<std::string>& paths,
                         const std::vector<std::string>& one_liners, bool merge_domains,
                         const Console& console);

// Prints one error for each problem.
void SayProblems(std::span<const rule::Problem> problems, const Console& console);

// The same for rules that settings name. Each error also names the setting and, if there is one,
// the line of the settings file.
void SayProblems(std::span<const rule::Problem> problems, const Configuration& configuration,
                 const Console& console);

// The same for a file that only this setting names: each error without a place in the file names
// the setting.
void SayProblems(std::span<const rule::Problem> problems, const Configuration& configuration,
                 std::string_view setting, const Console& console);

}  // namespace headgate::app
