// headgate completion bash|zsh|fish: a script that completes commands and flags in a shell, and
// headgate man: the manual page. Both are made of the same words as the help.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headgate::app {

// Absent if there is no script for this shell.
std::optional<std::string> CompletionFor(std::string_view shell);

// In the language of man(7).
std::string ManualPage();

}  // namespace headgate::app
