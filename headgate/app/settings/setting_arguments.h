// Parses the arguments of `headgate serve` and `headgate sidecar`, and combines them with the
// settings file and the environment into the configuration.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headgate/app/settings/arguments.h"
#include "headgate/app/settings/configuration.h"
#include "headgate/app/settings/console.h"

namespace headgate::app {

struct SettingArguments {
  Command command = Command::kServe;
  std::optional<std::string> config{};  // --config
  bool print_config = false;
  bool json = false;
  GivenValues flags{};
};

// `more` are the flags of the command that are not settings. Returns nothing if the arguments are
// invalid; the errors are then on the console.
std::optional<SettingArguments> ParseSettingArguments(Command command,
                                                      const std::vector<std::string>& arguments,
                                                      const Console& console,
                                                      const std::vector<Flag>& more = {});

// Reads the file (--config, HEADGATE_CONFIG, else for `serve` ./headgate.yaml if there is one), the
// environment and the flags. All problems are recorded in the configuration.
Configuration Configure(const SettingArguments& arguments, const Environment& environment);

// Prints all problems, those of the settings file first and by line. False if there are none.
bool SayProblems(const Configuration& configuration, const Console& console);

}  // namespace headgate::app
