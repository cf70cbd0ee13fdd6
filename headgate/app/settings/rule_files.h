// Loads the rules that commands name, and says their problems.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/app/settings/configuration.h"
#include "headgate/app/settings/console.h"
#include "headgate/rule/problem.h"
#include "headgate/watch/load_paths.h"

namespace headgate::app {

// Loads the rules of `paths` (watch/load_paths.h), with progress on the console.
watch::RulesOfPaths LoadPaths(const std::vector<std::string>& paths,
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
