// Parses the arguments of all commands. The only place that knows the parsing library.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headgate/app/console.h"

namespace headgate::app {

// The largest number that a flag takes: what JSON and RESP carry as an integer.
inline constexpr uint64_t kNumberMax = std::numeric_limits<int64_t>::max();

// A flag and where its value goes: a switch has none, a list may be given several times, all others
// once.
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
  std::vector<std::string>* others = nullptr;  // what is not a flag; null: there is nothing else
  std::string help = fmt::format("headgate help {}", command);  // the command that lists all flags
};

// False, and an error with a hint on the console, where the arguments make no sense.
bool ParseArguments(const ArgumentSpec& spec, const std::vector<std::string>& arguments,
                    const Console& console);

}  // namespace headgate::app
