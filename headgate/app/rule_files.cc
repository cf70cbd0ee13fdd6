#include "headgate/app/rule_files.h"

#include "headgate/watch/file_text.h"

namespace headgate::app {

rule::LoadResult LoadNamed(std::span<const rule::RuleFile> files, const std::vector<std::string>& one_liners,
                           bool merge_domains) {
  return rule::LoadRules(files, {.merge_domains = merge_domains ? rule::MergeDomains::kYes : rule::MergeDomains::kNo,
                                 .one_liners = one_liners});
}

RulesFromPaths LoadPaths(const std::vector<std::string>& paths, const std::vector<std::string>& one_liners,
                         bool merge_domains) {
  RulesFromPaths loaded;
  watch::FilesRead read = watch::ReadFiles(paths);
  if (!read.problems.empty()) {
    loaded.unreadable = std::move(read.problems);
    return loaded;
  }
  std::vector<rule::RuleFile> files;
  for (watch::FileText& file : read.files) {
    files.push_back({.name = std::move(file.path), .text = std::move(file.text)});
  }
  loaded.file_count = files.size();
  loaded.result = LoadNamed(files, one_liners, merge_domains);
  return loaded;
}

void SayProblems(const RulesFromPaths& loaded, const Console& console) {
  for (const std::string& problem : loaded.unreadable) {
    console.Error(problem, "name a rule file, or a directory of files *.yaml or *.yml");
  }
  for (const rule::Problem& problem : loaded.result.problems) console.Error(Describe(problem));
}

}  // namespace headgate::app
