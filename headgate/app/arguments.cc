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

bool ParseArguments(CLI::App& command, const std::vector<std::string>& arguments, std::span<const std::string> flags,
                    std::string_view command_name, const Console& console) {
  const std::string help = fmt::format("`headgate help {}` lists what there is", command_name);
  command.set_help_flag();
  command.allow_extras();
  try {
    // CLI11 takes them from the back.
    command.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    console.Error(error.what(), help);
    return false;
  }
  const std::vector<std::string> unknown = command.remaining();
  if (unknown.empty()) return true;
  const std::string_view word = std::string_view(unknown.front()).substr(0, unknown.front().find('='));
  const std::string_view nearest = NearestWord(word, flags);
  console.Error(fmt::format("unknown argument '{}' to `headgate {}`", unknown.front(), command_name),
                nearest.empty() ? help : fmt::format("did you mean '{}'?", nearest));
  return false;
}

}  // namespace headgate::app
