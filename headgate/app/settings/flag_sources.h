// Further places that give the values of a command's flags: a settings file and the environment, as
// for `headgate serve` (configuration.h). The setting of --drain-timeout is `drain_timeout` in the
// file, and HEADGATE_DRAIN_TIMEOUT in the environment. Precedence, lowest first: default, file,
// environment, flag.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/app/settings/arguments.h"
#include "headgate/app/settings/configuration.h"
#include "headgate/app/settings/console.h"

namespace headgate::app {

// The flags that name these places. They are not settings.
struct SourceFlags {
  std::optional<std::string> config{};
  bool print_config = false;
  bool json = false;

  void AddTo(std::vector<Flag>& flags);
};

class FlagSources {
 public:
  // Gives the targets of `spec` the values of the file and of the environment. Call it before the
  // arguments are parsed, which override them. `only_flags` are not settings. Returns false if
  // there is a problem; all of them are then on the console.
  bool Read(const ArgumentSpec& spec, const std::vector<std::string_view>& only_flags,
            const SourceFlags& sources, const Environment& environment, const Console& console);

  // Flags that are given count as the origin of their settings from now on.
  void NoteGiven(const std::vector<std::string>& arguments);
  // The place in the file or the environment that gave the flag, or empty.
  std::string_view PlaceOf(std::string_view flag) const;

  // For --print-config: every setting with its value and its origin. The text is a valid settings
  // file; settings that hold a secret are commented out.
  std::string Print(const ArgumentSpec& spec, bool json) const;

 private:
  std::map<std::string, std::string, std::less<>> origins_;  // by flag
  std::vector<SettingNames::Name> names_;
};

}  // namespace headgate::app
