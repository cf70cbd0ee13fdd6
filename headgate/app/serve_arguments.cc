#include "headgate/app/serve_arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "headgate/app/arguments.h"
#include "headgate/app/file_io.h"

namespace headgate::app {
namespace {

constexpr const char* kDefaultFile = "headgate.yaml";
constexpr size_t kFileBytesMax = size_t{4} << 20;

}  // namespace

std::optional<ServeArguments> ParseServeArguments(const std::vector<std::string>& arguments, const Console& console) {
  ServeArguments parsed;
  CLI::App command;
  std::string config;
  CLI::Option* config_option = command.add_option("--config", config);
  command.add_flag("--print-config", parsed.print_config);
  command.add_flag("--json", parsed.json);
  std::vector<std::vector<std::string>> values(AllSettings().size());
  std::vector<std::string> flags = {"--config", "--print-config", "--json"};
  for (size_t i = 0; i < values.size(); ++i) {
    const Setting& setting = AllSettings()[i];
    flags.push_back(FlagOf(setting));
    CLI::Option* option = command.add_option(FlagOf(setting), values[i])->allow_extra_args(false);
    if (!setting.is_list()) option->expected(1);
  }
  if (!ParseArguments(command, arguments, flags, "serve", console)) return std::nullopt;
  if (config_option->count() > 0) parsed.config = config;
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

std::optional<Configuration> Configure(const ServeArguments& arguments,
                                       const std::function<const char*(const char*)>& get_environment,
                                       const Console& console) {
  Configuration configuration;
  const char* from_environment = get_environment("HEADGATE_CONFIG");
  const bool named = arguments.config || from_environment != nullptr;
  const std::string path = arguments.config ? *arguments.config : named ? from_environment : kDefaultFile;
  const auto text = ReadFile(path, kFileBytesMax);
  if (text.ok()) {
    Apply(ReadSettingsFile(*text, path, configuration.problems), configuration);
  } else if (named || !absl::IsNotFound(text.status())) {
    configuration.problems.push_back({path, std::string(text.status().message()), "name another file with --config"});
  }
  Apply(ReadEnvironment(get_environment), configuration);
  Apply(arguments.flags, configuration);
  CheckTogether(configuration);
  if (configuration.problems.empty()) return configuration;
  for (const ConfigurationProblem& problem : configuration.problems) {
    console.Error(fmt::format("{}: {}", problem.where, problem.what), problem.hint);
  }
  return std::nullopt;
}

}  // namespace headgate::app
