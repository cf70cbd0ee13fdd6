#include "headgate/app/serve/serve_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "headgate/app/settings/arguments.h"
#include "headgate/app/settings/setting_flags.h"
#include "headgate/files/files.h"

namespace headgate::app {
namespace {

constexpr const char* kDefaultFile = "headgate.yaml";
constexpr size_t kFileBytesMax = size_t{4} << 20;

}  // namespace

std::optional<ServeArguments> ParseServeArguments(const std::vector<std::string>& arguments,
                                                  const Console& console) {
  ServeArguments parsed;
  ArgumentSpec spec{.command = "serve",
                    .flags = {{"--config", &parsed.config},
                              {"--print-config", &parsed.print_config},
                              {"--json", &parsed.json}},
                    .help = "headgate help serve --all"};
  SettingFlags settings([](const Setting&) { return true; });
  settings.AddTo(spec.flags);
  if (!ParseArguments(spec, arguments, console)) return std::nullopt;
  auto given = settings.Take();
  if (!given.ok()) {
    console.Error(std::string(given.status().message()), "give it once");
    return std::nullopt;
  }
  parsed.flags = *std::move(given);
  return parsed;
}

Configuration Configure(const ServeArguments& arguments, const Environment& environment) {
  Configuration configuration;
  const auto variable = environment.find("HEADGATE_CONFIG");
  const bool named = arguments.config || variable != environment.end();
  const std::string path = arguments.config ? *arguments.config
                           : named          ? variable->second
                                            : kDefaultFile;
  const auto text = files::ReadFile(path, kFileBytesMax);
  if (text.ok()) {
    configuration.file = std::filesystem::absolute(path);
    Apply(ReadSettingsFile(*text, path, configuration.problems), configuration);
  } else if (named || !absl::IsNotFound(text.status())) {
    configuration.problems.push_back(
        {{arguments.config ? "--config"
          : named          ? "HEADGATE_CONFIG"
                           : ""},
         std::string(text.status().message()),
         named ? "name a settings file that can be read, or none"
               : "make ./headgate.yaml readable, or name another file with --config"});
  }
  Apply(ReadEnvironment(environment, configuration.problems), configuration);
  Apply(arguments.flags, configuration);
  CheckTogether(configuration);
  return configuration;
}

bool SayProblems(const Configuration& configuration, const Console& console) {
  std::vector<ConfigurationProblem> problems = configuration.problems;
  const auto place = [](const ConfigurationProblem& problem) {
    const rule::Mark& mark = problem.where.mark;
    return std::pair(mark.line == 0 ? ~uint32_t{0} : mark.line, mark.column);
  };
  std::stable_sort(problems.begin(), problems.end(),
                   [&](const auto& a, const auto& b) { return place(a) < place(b); });
  for (const auto& [where, what, hint] : problems) {
    console.Error(where.place.empty() ? what : fmt::format("{}: {}", where.place, what), hint);
  }
  return !problems.empty();
}

}  // namespace headgate::app
