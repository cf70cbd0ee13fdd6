#include "headgate/app/validate.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "headgate/app/arguments.h"
#include "headgate/app/rule_files.h"

namespace headgate::app {
namespace {

using nlohmann::ordered_json;

ordered_json AsJson(const std::vector<rule::Problem>& problems) {
  ordered_json list = ordered_json::array();
  for (const rule::Problem& problem : problems) {
    list.push_back({{"file", problem.file},
                    {"line", problem.line},
                    {"column", problem.column},
                    {"message", problem.message},
                    {"hint", problem.hint}});
  }
  return list;
}

void PrintJson(const RulesFromPaths& loaded, const Console& console) {
  ordered_json answer = {{"valid", loaded.result.ok()},
                         {"files", loaded.file_count},
                         {"rules", loaded.result.ok() ? loaded.result.rules->rules().size() : 0},
                         {"unreadable", loaded.unreadable},
                         {"problem_count", loaded.unreadable.size() + rule::CountOf(loaded.result.problems)},
                         {"problems", AsJson(loaded.result.problems)},
                         {"warnings", AsJson(loaded.result.warnings)}};
  console.out << answer.dump(2, ' ', false, ordered_json::error_handler_t::replace) << '\n';
}

std::string Count(size_t n, std::string_view what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

// "in 2 files", "given as text", "in 2 files and given as text"
std::string Sources(const RulesFromPaths& loaded, size_t one_liners) {
  constexpr std::string_view kText = "given as text";
  if (loaded.file_count == 0) return std::string(kText);
  const std::string files = fmt::format("in {}", Count(loaded.file_count, "file"));
  return one_liners == 0 ? files : fmt::format("{} and {}", files, kText);
}

void PrintWords(const RulesFromPaths& loaded, size_t one_liners, const Console& console) {
  SayProblems(loaded, console);
  for (const rule::Problem& warning : loaded.result.warnings) console.err << "warning: " << Describe(warning) << '\n';
  const std::string sources = Sources(loaded, one_liners);
  if (loaded.result.ok()) {
    console.out << fmt::format("valid: {} {}\n", Count(loaded.result.rules->rules().size(), "rule"), sources);
  } else if (const size_t problems = rule::CountOf(loaded.result.problems); problems > 1) {
    console.err << fmt::format("not valid: {} {}\n", Count(problems, "problem"), sources);
  }
}

}  // namespace

int Validate(const std::vector<std::string>& arguments, const Console& console) {
  std::vector<std::string> paths;
  std::vector<std::string> one_liners;
  bool as_json = false;
  bool merge_domains = false;
  const ArgumentSpec spec{.command = "validate",
                          .flags = {{"--rule", &one_liners}, {"--merge-domains", &merge_domains}, {"--json", &as_json}},
                          .others = &paths};
  if (!ParseArguments(spec, arguments, console)) return kExitUsage;
  if (paths.empty() && one_liners.empty()) {
    console.Error("there is nothing to validate", "headgate validate rules.yaml, or a directory of rule files");
    return kExitUsage;
  }
  const RulesFromPaths loaded = LoadPaths(paths, one_liners, merge_domains);
  as_json ? PrintJson(loaded, console) : PrintWords(loaded, one_liners.size(), console);
  return loaded.result.ok() ? kExitOk : kExitUsage;
}

}  // namespace headgate::app
