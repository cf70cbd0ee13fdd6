#include "headgate/app/settings/rule_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "headgate/app/settings/progress.h"
#include "headgate/rule/quote.h"
#include "headgate/rule/read/one_liner.h"

namespace headgate::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDefault = "default";

// Whether `path` is the file, or the directory that contains it.
bool Names(const fs::path& path, const fs::path& file) {
  return path == file || path / file.filename() == file;
}

template <typename Names>
std::string_view PlaceOfItem(const Configuration& configuration, std::string_view setting,
                             const std::vector<std::string>& items, const Names& names) {
  const auto found = std::find_if(items.begin(), items.end(), names);
  if (found == items.end()) return kDefault;
  return configuration.OriginOfItem(setting, static_cast<size_t>(found - items.begin()));
}

}  // namespace

watch::RulesOfPaths LoadPaths(const std::vector<std::string>& paths,
                              const std::vector<std::string>& one_liners, bool merge_domains,
                              const Console& console) {
  const Progress progress(console, "reading the rules");
  return watch::LoadPaths(paths, one_liners, merge_domains);
}

void SayProblems(std::span<const rule::Problem> problems, const Console& console) {
  for (const rule::Problem& problem : problems)
    console.Error(PlaceAndMessage(problem), rule::Printable(problem.hint));
}

void SayProblems(std::span<const rule::Problem> problems, const Configuration& configuration,
                 const Console& console) {
  std::map<std::string_view, const std::string*>
      broken;  // by the place that names a file: the file
  for (const rule::Problem& problem : problems) {
    const std::string_view file_place =
        PlaceOfItem(configuration, "rules", configuration.settings.rules,
                    [&](const std::string& path) { return Names(path, problem.file); });
    const std::string_view text_place = PlaceOfItem(
        configuration, "rule", configuration.settings.rule,
        [&](const std::string& text) { return rule::read::OneLinerSource(text) == problem.file; });
    const bool in_file = file_place != kDefault && problem.line != 0;
    if (in_file) broken.emplace(file_place, &problem.file);
    // A problem in a line of a rule file already has its place.
    const std::string_view place = in_file                  ? kDefault
                                   : file_place != kDefault ? file_place
                                                            : text_place;
    const std::string what = PlaceAndMessage(problem);
    console.Error(place == kDefault ? what : fmt::format("{}: {}", place, what),
                  rule::Printable(problem.hint));
  }
  for (const auto& [place, file] : broken) {
    console.Error(
        fmt::format("{}: the rules of {} cannot be loaded", place, rule::Printable(*file)),
        fmt::format("`headgate validate {}` checks them without a server", rule::Printable(*file)));
  }
}

void SayProblems(std::span<const rule::Problem> problems, const Configuration& configuration,
                 std::string_view setting, const Console& console) {
  for (const rule::Problem& problem : problems) {
    const std::string what = PlaceAndMessage(problem);
    console.Error(
        problem.line > 0 ? what : fmt::format("{}: {}", configuration.OriginOf(setting), what),
        rule::Printable(problem.hint));
  }
}

}  // namespace headgate::app
