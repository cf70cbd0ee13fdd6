#include "headgate/app/tools/validate.h"

#include <fmt/format.h>

#include <optional>

#include "headgate/app/settings/arguments.h"
#include "headgate/app/settings/progress.h"
#include "headgate/app/settings/rule_files.h"
#include "headgate/follow/mappings.h"
#include "headgate/wire/json.h"

namespace headgate::app {
namespace {

using wire::Json;

Json AsJson(const std::vector<rule::Problem>& problems) {
  Json list = Json::Array();
  for (const rule::Problem& problem : problems) {
    list.Append(Json::Object({{"file", problem.file},
                              {"line", problem.line == 0 ? Json() : Json(problem.line)},
                              {"column", problem.line == 0 ? Json() : Json(problem.column)},
                              {"message", problem.message},
                              {"hint", problem.hint}}));
  }
  return list;
}

void PrintJson(const watch::RulesOfPaths& loaded, const Console& console) {
  const Json answer =
      Json::Object({{"valid", loaded.result.ok()},
                    {"files", loaded.file_count},
                    {"rules", loaded.result.ok() ? loaded.result.rules->rules().size() : 0},
                    {"problem_count", rule::CountOf(loaded.result.problems)},
                    {"problems", AsJson(loaded.result.problems)},
                    {"warnings", AsJson(loaded.result.warnings)}});
  console.out << answer.IndentedText(2) << '\n';
}

std::string Count(size_t n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

// " in 2 files", " given as text" or " in 2 files and given as text"; empty if the files could not
// be read.
std::string Sources(const watch::RulesOfPaths& loaded, bool any_paths, bool any_text) {
  if (any_paths && loaded.file_count == 0) return {};
  const std::string files =
      any_paths ? fmt::format(" in {}", Count(loaded.file_count, "file")) : "";
  return fmt::format("{}{}{}", files, any_paths && any_text ? " and" : "",
                     any_text ? " given as text" : "");
}

void PrintWarnings(const std::vector<rule::Problem>& warnings, const Console& console) {
  for (const rule::Problem& warning : warnings)
    console.err << "warning: " << Describe(warning) << '\n';
}

void PrintWords(const watch::RulesOfPaths& loaded, std::string_view sources,
                const Console& console) {
  SayProblems(loaded.result.problems, console);
  PrintWarnings(loaded.result.warnings, console);
  if (loaded.result.ok()) {
    console.out << fmt::format("valid: {}{}\n", Count(loaded.result.rules->rules().size(), "rule"),
                               sources);
  } else {
    console.err << fmt::format("not valid: {}{}\n",
                               Count(rule::CountOf(loaded.result.problems), "problem"), sources);
  }
}

mapping::LoadedMappings LoadMappings(const std::string& path, mapping::Asker asker,
                                     const Console& console) {
  const Progress progress(console, "reading the mappings");
  return follow::LoadMappingFile(path, asker);
}

int ValidateMappings(const std::string& path, mapping::Asker asker, bool as_json,
                     const Console& console) {
  const mapping::LoadedMappings loaded = LoadMappings(path, asker, console);
  const bool valid = loaded.set != nullptr;
  const size_t mappings = valid ? loaded.set->mappings.size() : 0;
  const size_t problems = rule::CountOf(loaded.problems);
  if (as_json) {
    const Json answer = Json::Object({{"valid", valid},
                                      {"mappings", mappings},
                                      {"problem_count", problems},
                                      {"problems", AsJson(loaded.problems)},
                                      {"warnings", AsJson(loaded.warnings)}});
    console.out << answer.IndentedText(2) << '\n';
  } else if (valid) {
    PrintWarnings(loaded.warnings, console);
    console.out << fmt::format("valid: {}\n", Count(mappings, "mapping"));
  } else {
    SayProblems(loaded.problems, console);
    console.err << fmt::format("not valid: {}\n", Count(problems, "problem"));
  }
  return valid ? kExitOk : kExitUsage;
}

}  // namespace

int Validate(const std::vector<std::string>& arguments, const Console& console) {
  std::vector<std::string> paths;
  std::vector<std::string> one_liners;
  bool as_json = false;
  bool merge_domains = false;
  std::optional<std::string> auth;
  std::optional<std::string> mappings;
  const ArgumentSpec spec{.command = "validate",
                          .flags = {{"--rule", &one_liners},
                                    {"--merge-domains", &merge_domains},
                                    {"--auth", &auth},
                                    {"--mappings", &mappings},
                                    {"--json", &as_json}},
                          .others = &paths};
  if (!ParseArguments(spec, arguments, console)) return kExitUsage;
  const bool rules_too = !paths.empty() || !one_liners.empty();
  if ((auth && mappings) || ((auth || mappings) && rules_too)) {
    console.Error("mappings and rules are checked one after the other",
                  "headgate validate --auth auth.yaml && headgate validate rules.yaml");
    return kExitUsage;
  }
  if (auth) return ValidateMappings(*auth, mapping::Asker::kOtherProxy, as_json, console);
  if (mappings) return ValidateMappings(*mappings, mapping::Asker::kOwnProxy, as_json, console);
  if (paths.empty() && one_liners.empty()) {
    console.Error("no rules are given",
                  "headgate validate rules.yaml, or a directory of rule files");
    return kExitUsage;
  }
  const watch::RulesOfPaths loaded = LoadPaths(paths, one_liners, merge_domains, console);
  as_json ? PrintJson(loaded, console)
          : PrintWords(loaded, Sources(loaded, !paths.empty(), !one_liners.empty()), console);
  return loaded.result.ok() ? kExitOk : kExitUsage;
}

}  // namespace headgate::app
