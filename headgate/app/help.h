// The texts of `headgate help`: one screen by task, and one for each command.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace headgate::app {

std::string_view Overview();
// kScreen: what is needed most; kAll: every setting of `serve`.
enum class HelpLength : uint8_t { kScreen, kAll };
// Empty if there is no such command.
std::string HelpOf(std::string_view command, HelpLength length = HelpLength::kScreen);
std::span<const std::string> CommandNames();

}  // namespace headgate::app
