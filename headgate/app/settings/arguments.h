// Parses the arguments of all commands. No other file uses the parsing library CLI11.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headgate/app/settings/console.h"
#include "headgate/base/time.h"

namespace headgate::app {

// The largest number that a flag takes, because JSON and RESP integers end there.
inline constexpr uint64_t kNumberMax = std::numeric_limits<int64_t>::max();

// A flag and the variable that receives its value. A switch (bool) takes no value, a list may be
// given several times, every other flag once.
struct Flag {
  std::string name;  // "--json"
  std::variant<bool*, uint64_t*, std::string*, std::optional<std::string>*,
               std::vector<std::string>*>
      target;
  std::string alone{};  // the value if the flag is given without one; empty: it needs one
};

// The arguments that a command takes.
struct ArgumentSpec {
  std::string_view command;
  std::vector<Flag> flags;
  std::vector<std::string>* others = nullptr;  // arguments that are not flags; null: none allowed
  std::string help = fmt::format("headgate help {}", command);  // the command that lists all flags
};

// Returns false if the arguments are invalid; an error with a hint is then on the console.
bool ParseArguments(const ArgumentSpec& spec, const std::vector<std::string>& arguments,
                    const Console& console);

// The value of --timeout: a duration up to an hour. Nothing if it is none; an error, with this
// example as its hint, is then on the console.
std::optional<base::Duration> ParseTimeout(std::string_view text, std::string_view example,
                                           const Console& console);

}  // namespace headgate::app
