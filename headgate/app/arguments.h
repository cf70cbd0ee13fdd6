// What all commands do alike with their arguments.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/app/console.h"

namespace CLI {
class App;
}

namespace headgate::app {

// Runs CLI11 over `arguments`. False, and an error with a hint on the console, where they make no sense. `flags` are
// those that there are: what a misspelt one is compared with.
bool ParseArguments(CLI::App& command, const std::vector<std::string>& arguments, std::span<const std::string> flags,
                    std::string_view command_name, const Console& console);

// The word of `words` that was probably meant, or empty.
std::string_view NearestWord(std::string_view word, std::span<const std::string> words);

}  // namespace headgate::app
