#include "headgate/app/serve_arguments.h"

#include <fmt/format.h>

#include "headgate/app/arguments.h"
#include "headgate/app/file_io.h"

namespace headgate::app {
namespace {

constexpr const char* kDefaultFile = "headgate.yaml";
constexpr size_t kFileBytesMax = size_t{4} << 20;

}  // namespace

std::optional<ServeArguments> ParseServeArguments(const std::vector<std::string>& arguments, const Console& console) {
  ServeArguments parsed;
  ArgumentSpec spec{
      .command = "serve",
      .flags = {{"--config", &parsed.config}, {"--print-config", &parsed.print_config}, {"--json", &parsed.json}}};
  std::vector<std::vector<std::string>> values(AllSettings().size());
  for (size_t i = 0; i < values.size(); ++i) spec.flags.push_back({FlagOf(AllSettings()[i]), &values[i]});
  if (!ParseArguments(spec, arguments, console)) return std::nullopt;
  for (size_t i = 0; i < values.size(); ++i) {
    const Setting& setting = AllSettings()[i];
    if (values[i].empty()) continue;
    if (!setting.is_list() && values[i].size() > 1) {
      console.Error(fmt::format("{} is given {} times", FlagOf(setting), values[i].size()), "give it once");
      return std::nullopt;
    }
    parsed.flags.emplace(std::string(setting.name), GivenValue{values[i], FlagOf(setting)});
  }
  return parsed;
}

Configuration Configure(const ServeArguments& arguments,
                        const std::function<const char*(const char*)>& get_environment) {
  Configuration configuration;
  const char* from_environment = get_environment("HEADGATE_CONFIG");
  const bool named = arguments.config || from_environment != nullptr;
  const std::string path = arguments.config ? *arguments.config : named ? from_environment : kDefaultFile;
  const auto text = ReadFile(path, kFileBytesMax);
  if (text.ok()) {
    Apply(ReadSettingsFile(*text, path, configuration.problems), configuration);
  } else if (named || !absl::IsNotFound(text.status())) {
    configuration.problems.push_back({"", std::string(text.status().message()), "--config names another file"});
  }
  Apply(ReadEnvironment(get_environment), configuration);
  Apply(arguments.flags, configuration);
  CheckTogether(configuration);
  return configuration;
}

bool SayProblems(const Configuration& configuration, const Console& console) {
  for (const ConfigurationProblem& problem : configuration.problems) {
    console.Error(problem.where.empty() ? problem.what : fmt::format("{}: {}", problem.where, problem.what),
                  problem.hint);
  }
  return !configuration.problems.empty();
}

}  // namespace headgate::app
