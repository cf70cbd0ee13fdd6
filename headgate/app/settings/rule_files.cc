#include "headgate/app/settings/rule_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "headgate/app/settings/progress.h"
#include "headgate/rule/quote.h"
#include "headgate/rule/read/document.h"
#include "headgate/rule/read/one_liner.h"
#include "headgate/watch/file/file_text.h"

namespace headgate::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDefault = "default";

// Whether `path` is the file, or the directory that contains it.
bool Names(const fs::path& path, const fs::path& file) {
  return path == file || path / file.filename() == file;
}

bool IsFileOfMappings(std::string_view text) {
  const rule::read::Document::Parsed parsed = rule::read::Document::Parse(text);
  if (parsed.error || parsed.document->root() == nullptr) return false;
  const rule::read::DocumentNode& root = *parsed.document->root();
  if (root.kind != rule::read::NodeKind::kMapping) return false;
  const auto has = [&](std::string_view word) {
    for (size_t i = 0; i + 1 < root.children.size(); i += 2) {
      const rule::read::DocumentNode& key = *root.children[i];
      if (key.kind == rule::read::NodeKind::kScalar && key.text == word) return true;
    }
    return false;
  };
  return has("mappings") && !has("descriptors");
}

// If a file of rules is really a file of mappings, replaces its problems by one that says so.
void NameFilesOfMappings(std::span<const rule::read::RuleFile> files,
                         std::vector<rule::Problem>& problems) {
  for (const rule::read::RuleFile& file : files) {
    const auto is_of_file = [&](const rule::Problem& problem) { return problem.file == file.name; };
    const auto first = std::find_if(problems.begin(), problems.end(), is_of_file);
    if (first == problems.end() || !IsFileOfMappings(file.text)) continue;
    *first = rule::WholeFileProblem(
        file.name, "this is a file of mappings, not of rules",
        fmt::format("`headgate validate --auth {}` checks it; serve takes it with --auth, sidecar "
                    "with --mappings",
                    file.name));
    problems.erase(std::remove_if(first + 1, problems.end(), is_of_file), problems.end());
  }
}

template <typename Names>
std::string_view PlaceOfItem(const Configuration& configuration, std::string_view setting,
                             const std::vector<std::string>& items, const Names& names) {
  const auto found = std::find_if(items.begin(), items.end(), names);
  if (found == items.end()) return kDefault;
  return configuration.OriginOfItem(setting, static_cast<size_t>(found - items.begin()));
}

}  // namespace

rule::read::LoadResult LoadNamed(std::span<const rule::read::RuleFile> files,
                                 const std::vector<std::string>& one_liners, bool merge_domains) {
  return rule::read::LoadRules(
      files, {.merge_domains =
                  merge_domains ? rule::read::MergeDomains::kYes : rule::read::MergeDomains::kNo,
              .one_liners = one_liners});
}

RulesFromPaths LoadPaths(const std::vector<std::string>& paths,
                         const std::vector<std::string>& one_liners, bool merge_domains) {
  RulesFromPaths loaded;
  watch::file::FilesRead read = watch::file::ReadFiles(paths);
  if (!read.problems.empty()) {
    loaded.result.problems = std::move(read.problems);
    loaded.awaited = read.awaited;
    return loaded;
  }
  std::vector<rule::read::RuleFile> files;
  for (watch::file::FileText& file : read.files) {
    files.push_back({.name = std::move(file.path), .text = std::move(file.text)});
  }
  loaded.file_count = files.size();
  loaded.result = LoadNamed(files, one_liners, merge_domains);
  NameFilesOfMappings(files, loaded.result.problems);
  return loaded;
}

RulesFromPaths LoadPaths(const std::vector<std::string>& paths,
                         const std::vector<std::string>& one_liners, bool merge_domains,
                         const Console& console) {
  const Progress progress(console, "reading the rules");
  return LoadPaths(paths, one_liners, merge_domains);
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
