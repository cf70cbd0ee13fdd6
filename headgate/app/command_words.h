// The words of the command line as the help names them, for completions and the manual page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headgate::app {

struct CommandFlag {
  std::string name;                    // "--rules"
  std::string argument{};              // "PATH"; empty if it takes none
  std::string help{};                  // one sentence
  std::vector<std::string> choices{};  // if only these values are possible
  bool takes_path = false;
};

struct CommandWords {
  std::string name;
  std::string summary;
  std::vector<std::string> choices{};  // if only these words follow; otherwise files do
  std::vector<CommandFlag> flags{};
};

// All commands, in the order of the help; `serve` and `sidecar` with a flag for each setting.
std::vector<CommandWords> AllCommandWords();

}  // namespace headgate::app
