#include "headgate/app/settings/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>

#include "headgate/rule/duration.h"
#include "headgate/rule/problem.h"

namespace headgate::app {
namespace {

// The flag that the user probably meant, or empty.
std::string NearestFlag(std::string_view word, const std::vector<std::string>& names) {
  if (!word.starts_with("--")) return "";
  // Other programs use these names for an address.
  if (word == "--port" || word == "--host") {
    const auto found = std::find_if(names.begin(), names.end(), [](const std::string& name) {
      return name == "--listen" || name == "--server";
    });
    return found == names.end() ? "" : *found;
  }
  std::vector<std::string_view> words;
  for (const std::string& name : names) words.push_back(std::string_view(name).substr(2));
  const std::string_view nearest = rule::NearestWord(word.substr(2), words);
  return nearest.empty() ? "" : fmt::format("--{}", nearest);
}

// The value of an unknown --port, if it is a port: it comes behind "=", or as the next argument.
std::string PortOf(const std::vector<std::string>& unknown) {
  const size_t equals = unknown.front().find('=');
  const std::string value = equals != std::string::npos ? unknown.front().substr(equals + 1)
                            : unknown.size() > 1        ? unknown[1]
                                                        : "";
  return value.find_first_not_of("0123456789") == value.npos ? value : "";
}

// Empty if `text` is a whole number in range, else an error message. CLI11's own message would show
// the bounds of a double.
std::string NumberProblem(const std::string& text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool good =
      error == std::errc() && end == text.data() + text.size() && number <= kNumberMax;
  return good ? std::string()
              : fmt::format("'{}' is not a whole number from 0 to {}", text, kNumberMax);
}

auto FindFlag(const ArgumentSpec& spec, std::string_view name) {
  return std::find_if(spec.flags.begin(), spec.flags.end(),
                      [&](const Flag& flag) { return flag.name == name; });
}

// The arguments, with the value inserted for each flag that is given without one and may be.
std::vector<std::string> WithValues(const ArgumentSpec& spec,
                                    const std::vector<std::string>& arguments) {
  std::vector<std::string> all;
  for (size_t i = 0; i < arguments.size(); ++i) {
    all.push_back(arguments[i]);
    const auto flag = FindFlag(spec, arguments[i]);
    if (flag == spec.flags.end() || flag->alone.empty()) continue;
    if (i + 1 == arguments.size() || arguments[i + 1].starts_with('-')) all.push_back(flag->alone);
  }
  return all;
}

// The first flag that is followed by another flag instead of its value, or empty. CLI11 would take
// the second flag as the value; a user who means that writes --flag=--value.
std::string_view FlagWithoutValue(const ArgumentSpec& spec,
                                  const std::vector<std::string>& arguments) {
  for (size_t i = 0; i + 1 < arguments.size(); ++i) {
    const auto flag = FindFlag(spec, arguments[i]);
    if (flag == spec.flags.end() || std::holds_alternative<bool*>(flag->target)) continue;
    const std::string_view next = arguments[++i];
    if (FindFlag(spec, next.substr(0, next.find('='))) != spec.flags.end()) return flag->name;
  }
  return {};
}

size_t TimesGiven(std::string_view flag, const std::vector<std::string>& arguments) {
  return static_cast<size_t>(std::count_if(
      arguments.begin(), arguments.end(),
      [&](std::string_view argument) { return argument.substr(0, argument.find('=')) == flag; }));
}

}  // namespace

bool ParseArguments(const ArgumentSpec& spec, const std::vector<std::string>& given,
                    const Console& console) {
  const std::vector<std::string> arguments = WithValues(spec, given);
  const std::string help = fmt::format("`{}` lists all flags", spec.help);
  if (const std::string_view flag = FlagWithoutValue(spec, arguments); !flag.empty()) {
    console.Error(fmt::format("{} needs a value", flag), help);
    return false;
  }
  CLI::App parser;
  parser.set_help_flag();
  parser.allow_extras();
  std::vector<std::string> names;
  for (const Flag& flag : spec.flags) {
    names.push_back(flag.name);
    if (const auto* is_set = std::get_if<bool*>(&flag.target)) {
      parser.add_flag(flag.name, **is_set);
    } else if (const auto* list = std::get_if<std::vector<std::string>*>(&flag.target)) {
      parser.add_option(flag.name, **list)->allow_extra_args(false);
    } else if (const auto* number = std::get_if<uint64_t*>(&flag.target)) {
      parser.add_option(flag.name, **number)->check(NumberProblem, "");
    } else if (const auto* optional = std::get_if<std::optional<std::string>*>(&flag.target)) {
      parser.add_option_function<std::string>(
          flag.name, [optional](const std::string& value) { **optional = value; });
    } else {
      parser.add_option(flag.name, *std::get<std::string*>(flag.target));
    }
  }
  if (spec.others != nullptr) parser.add_option("arguments", *spec.others);
  try {
    // CLI11 expects the arguments in reverse order.
    parser.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string text = error.what();
    const std::string flag = text.substr(0, text.find(':'));
    if (const size_t times = TimesGiven(flag, arguments); times > 1) {
      console.Error(fmt::format("{} is given {} times", flag, times), "give it once");
    } else {
      console.Error(fmt::format("{} needs a value", flag), help);
    }
    return false;
  } catch (const CLI::ParseError& error) {
    console.Error(error.what(), help);
    return false;
  }
  const std::vector<std::string> unknown = parser.remaining();
  if (unknown.empty()) return true;
  const std::string_view word =
      std::string_view(unknown.front()).substr(0, unknown.front().find('='));
  std::string nearest = NearestFlag(word, names);
  if (word == "--port" && !nearest.empty() && !PortOf(unknown).empty())
    nearest += " 127.0.0.1:" + PortOf(unknown);
  console.Error(
      fmt::format("unknown argument '{}' to `headgate {}`", unknown.front(), spec.command),
      nearest.empty() ? help : fmt::format("did you mean '{}'?", nearest));
  return false;
}

std::optional<base::Duration> ParseTimeout(std::string_view text, std::string_view example,
                                           const Console& console) {
  const auto timeout = rule::ParseDuration(text);
  if (timeout.ok() && *timeout <= std::chrono::hours(1)) return *timeout;
  console.Error(fmt::format("--timeout '{}' is not a duration up to 1h", text), example);
  return std::nullopt;
}

}  // namespace headgate::app
