#include "headgate/app/settings/setting_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "headgate/files/files.h"

namespace headgate::app {
namespace {

constexpr const char* kDefaultSettingsFile = "headgate.yaml";
constexpr size_t kSettingsFileBytesMax = size_t{4} << 20;

}  // namespace

std::optional<SettingArguments> ParseSettingArguments(Command command,
                                                      const std::vector<std::string>& arguments,
                                                      const Console& console,
                                                      const std::vector<Flag>& more) {
  SettingArguments parsed{.command = command};
  const std::span<const Setting> settings = AllSettings(command);
  std::vector<std::vector<std::string>> values(settings.size());
  ArgumentSpec spec{.command = NameOf(command),
                    .flags = {{"--config", &parsed.config},
                              {"--print-config", &parsed.print_config},
                              {"--json", &parsed.json}},
                    .help = fmt::format("headgate help {} --all", NameOf(command))};
  spec.flags.insert(spec.flags.end(), more.begin(), more.end());
  for (size_t i = 0; i < settings.size(); ++i) {
    spec.flags.push_back(
        {FlagOf(settings[i]), &values[i], settings[i].choices == kNoOrYes ? "yes" : ""});
  }
  if (!ParseArguments(spec, arguments, console)) return std::nullopt;
  for (size_t i = 0; i < settings.size(); ++i) {
    if (values[i].empty()) continue;
    const std::string flag = FlagOf(settings[i]);
    if (!settings[i].is_list() && values[i].size() > 1) {
      console.Error(fmt::format("{} is given {} times", flag, values[i].size()), "give it once");
      return std::nullopt;
    }
    parsed.flags.emplace(settings[i].name, GivenValue{std::move(values[i]), {flag}});
  }
  return parsed;
}

Configuration Configure(const SettingArguments& arguments, const Environment& environment) {
  Configuration configuration(arguments.command);
  const auto variable = environment.find("HEADGATE_CONFIG");
  const bool named = arguments.config || variable != environment.end();
  const std::string path = arguments.config ? *arguments.config
                           : named          ? variable->second
                                            : kDefaultSettingsFile;
  if (named || arguments.command == Command::kServe) {
    const auto text = files::ReadFile(path, kSettingsFileBytesMax);
    if (text.ok()) {
      configuration.file = std::filesystem::absolute(path);
      Apply(ReadSettingsFile(*text, path, configuration.problems, arguments.command),
            configuration);
    } else if (named || !absl::IsNotFound(text.status())) {
      configuration.problems.push_back(
          {{arguments.config ? "--config"
            : named          ? "HEADGATE_CONFIG"
                             : ""},
           std::string(text.status().message()),
           named ? "name a settings file that can be read, or none"
                 : "make ./headgate.yaml readable, or name another file with --config"});
    }
  }
  Apply(ReadEnvironment(environment, configuration.problems, arguments.command), configuration);
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
