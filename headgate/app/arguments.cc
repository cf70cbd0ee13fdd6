#include "headgate/app/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

namespace headgate::app {
namespace {

// How many letters must change to make one word of the other.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view NearestWord(std::string_view word, std::span<const std::string> words) {
  std::string_view nearest;
  size_t distance_min = 4;  // more changes than three are another word
  if (word.size() > 64) return nearest;
  for (const std::string& candidate : words) {
    const size_t distance = Distance(word, candidate);
    if (distance < distance_min) {
      distance_min = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

bool ParseArguments(const ArgumentSpec& spec, const std::vector<std::string>& arguments, const Console& console) {
  const std::string help = fmt::format("`headgate help {}` lists what there is", spec.command);
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
      // Also checks what the number conversion lets through: "-1".
      parser.add_option(flag.name, **number)->check(CLI::NonNegativeNumber);
    } else if (const auto* optional = std::get_if<std::optional<std::string>*>(&flag.target)) {
      parser.add_option_function<std::string>(flag.name, [optional](const std::string& value) { **optional = value; });
    } else {
      parser.add_option(flag.name, *std::get<std::string*>(flag.target));
    }
  }
  if (spec.others != nullptr) parser.add_option("arguments", *spec.others);
  try {
    // CLI11 takes them from the back.
    parser.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    console.Error(error.what(), help);
    return false;
  }
  const std::vector<std::string> unknown = parser.remaining();
  if (unknown.empty()) return true;
  const std::string_view word = std::string_view(unknown.front()).substr(0, unknown.front().find('='));
  const std::string_view nearest = NearestWord(word, names);
  console.Error(fmt::format("unknown argument '{}' to `headgate {}`", unknown.front(), spec.command),
                nearest.empty() ? help : fmt::format("did you mean '{}'?", nearest));
  return false;
}

}  // namespace headgate::app
