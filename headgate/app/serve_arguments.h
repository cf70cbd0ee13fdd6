// `headgate serve`'s arguments, and the configuration that they, the file and the environment make
// together.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headgate/app/configuration.h"
#include "headgate/app/console.h"

namespace headgate::app {

struct ServeArguments {
  std::optional<std::string> config;  // --config
  bool print_config = false;
  bool json = false;
  GivenValues flags;
};

// Nothing, and errors on the console, if they make no sense.
std::optional<ServeArguments> ParseServeArguments(const std::vector<std::string>& arguments,
                                                  const Console& console);

// Reads the file (--config, HEADGATE_CONFIG, else ./headgate.yaml if there is one), the environment
// and the flags. All problems are in the configuration.
Configuration Configure(const ServeArguments& arguments, const Environment& environment);

// All of them: those of the settings file first, by line. False if there are none.
bool SayProblems(const Configuration& configuration, const Console& console);

}  // namespace headgate::app
