// What `headgate help` says: one screen by task, and one for each command.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace headgate::app {

std::string_view Overview();
// Empty where there is no such command.
enum class HelpLength : uint8_t { kScreen, kAll };
std::string HelpOf(std::string_view command, HelpLength length = HelpLength::kScreen);
std::span<const std::string> CommandNames();

}  // namespace headgate::app
