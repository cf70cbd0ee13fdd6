// What all commands do alike with their arguments. The only place that knows the parsing library.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headgate/app/console.h"

namespace headgate::app {

// A flag and where its value goes: a switch has none, a list may be given several times, all others once.
struct Flag {
  std::string name;  // "--json"
  std::variant<bool*, uint64_t*, std::string*, std::optional<std::string>*, std::vector<std::string>*> target;
};

// What a command takes.
struct ArgumentSpec {
  std::string_view command;
  std::vector<Flag> flags;
  std::vector<std::string>* others = nullptr;  // what is no flag; null: there is nothing else
};

// False, and an error with a hint on the console, where the arguments make no sense.
bool ParseArguments(const ArgumentSpec& spec, const std::vector<std::string>& arguments, const Console& console);

// The word of `words` that was probably meant, or empty.
std::string_view NearestWord(std::string_view word, std::span<const std::string> words);

}  // namespace headgate::app
