// The texts of `headgate help`: an overview by task on one screen, and a page for each command.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace headgate::app {

std::string_view Overview();
// kScreen: the most used settings of `serve` and `sidecar`; kAll: every setting.
enum class HelpLength : uint8_t { kScreen, kAll };
// Empty if there is no such command.
std::string HelpOf(std::string_view command, HelpLength length = HelpLength::kScreen);
std::span<const std::string> CommandNames();

}  // namespace headgate::app
