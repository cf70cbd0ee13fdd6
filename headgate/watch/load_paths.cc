#include "headgate/watch/load_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "headgate/rule/read/document.h"
#include "headgate/watch/file/file_text.h"

namespace headgate::watch {
namespace {

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

}  // namespace

RulesOfPaths LoadPaths(const std::vector<std::string>& paths,
                       const std::vector<std::string>& one_liners, bool merge_domains) {
  RulesOfPaths loaded;
  file::FilesRead read = file::ReadFiles(paths);
  if (!read.problems.empty()) {
    loaded.result.problems = std::move(read.problems);
    loaded.awaited = read.awaited;
    return loaded;
  }
  std::vector<rule::read::RuleFile> files;
  for (file::FileText& read_file : read.files)
    files.push_back({.name = std::move(read_file.path), .text = std::move(read_file.text)});
  loaded.file_count = files.size();
  using rule::read::MergeDomains;
  loaded.result = rule::read::LoadRules(
      files, {.merge_domains = merge_domains ? MergeDomains::kYes : MergeDomains::kNo,
              .one_liners = one_liners});
  NameFilesOfMappings(files, loaded.result.problems);
  return loaded;
}

}  // namespace headgate::watch
