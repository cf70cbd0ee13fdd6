#include "headgate/app/command_words.h"

#include <algorithm>
#include <optional>
#include <span>

#include "headgate/app/help.h"
#include "headgate/app/settings/settings.h"

namespace headgate::app {
namespace {

constexpr std::string_view kFlagBegin = "  --";

// "a|b|c"
std::vector<std::string> ChoicesIn(std::string_view text) {
  std::vector<std::string> choices;
  while (!text.empty()) {
    const std::string_view choice = text.substr(0, text.find('|'));
    choices.emplace_back(choice);
    text.remove_prefix(std::min(choice.size() + 1, text.size()));
  }
  return choices;
}

// "  --rules PATH          decide by these rules" as the help writes it.
std::optional<CommandFlag> FlagIn(std::string_view line) {
  if (!line.starts_with(kFlagBegin)) return std::nullopt;
  line.remove_prefix(2);
  const size_t help_at = line.find("  ");
  if (help_at == line.npos) return std::nullopt;
  const std::string_view words = line.substr(0, help_at);
  const size_t space = words.find(' ');
  std::string_view help = line.substr(help_at);
  help.remove_prefix(std::min(help.find_first_not_of(' '), help.size()));
  CommandFlag flag{.name = std::string(words.substr(0, space)), .help = std::string(help)};
  if (space != words.npos) flag.argument = words.substr(space + 1);
  flag.takes_path = flag.argument == "PATH";
  if (flag.argument.find('|') != flag.argument.npos) flag.choices = ChoicesIn(flag.argument);
  return flag;
}

std::string SummaryIn(std::string_view help) {
  const std::string_view line = help.substr(0, help.find('\n'));
  return std::string(line.substr(line.find(": ") + 2));
}

// "create-table", but not "FILES…" or "[DOMAIN]".
bool IsFixedWord(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(),
                                      [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
}

// The first words behind the command in its usage lines: "bash|zsh|fish" of "  headgate completion
// bash|zsh|fish", or one from each of the lines "  headgate rules list" and "  headgate rules put".
// None if the first usage line has no fixed word there.
std::vector<std::string> WordsBehind(std::string_view command, std::string_view help) {
  const std::string usage = "\n  headgate " + std::string(command) + " ";
  std::vector<std::string> words;
  for (size_t at = help.find(usage); at != help.npos; at = help.find(usage, at)) {
    at += usage.size();
    std::string_view word = help.substr(at);
    word = word.substr(0, word.find_first_of(" \n"));
    if (word.size() > 1 && word.find('|') != word.npos) return ChoicesIn(word);
    if (!IsFixedWord(word)) break;
    if (std::find(words.begin(), words.end(), word) == words.end()) words.emplace_back(word);
  }
  return words;
}

CommandFlag FlagOfSetting(const Setting& setting) {
  CommandFlag flag{.name = FlagOf(setting), .help = std::string(setting.help)};
  // A flag without a value means yes.
  if (setting.choices == kNoOrYes) return flag;
  flag.argument = setting.is_list() ? "TEXT" : TypeOf(setting);
  std::transform(flag.argument.begin(), flag.argument.end(), flag.argument.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  flag.takes_path = setting.paths == Paths::kAll;
  if (flag.takes_path) flag.argument = "PATH";
  if (setting.choices.empty()) return flag;
  flag.argument = "WORD";
  flag.choices = ChoicesIn(setting.choices);
  return flag;
}

// The settings that are flags of the command.
std::span<const Setting> SettingsOf(std::string_view command) {
  for (const Command server : {Command::kServe, Command::kSidecar}) {
    if (command == NameOf(server)) return AllSettings(server);
  }
  return {};
}

}  // namespace

std::vector<CommandWords> AllCommandWords() {
  std::vector<CommandWords> commands;
  for (const std::string& name : CommandNames()) {
    const std::string help = HelpOf(name);
    CommandWords command{
        .name = name, .summary = SummaryIn(help), .choices = WordsBehind(name, help)};
    const std::span<const Setting> settings = SettingsOf(name);
    std::string_view rest = help;
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      const auto flag = FlagIn(line);
      // The help shows the most used settings; here they are all.
      const bool shows_setting = flag && std::ranges::any_of(settings, [&](const Setting& setting) {
                                   return FlagOf(setting) == flag->name;
                                 });
      if (flag && !shows_setting) command.flags.push_back(*flag);
    }
    for (const Setting& setting : settings) command.flags.push_back(FlagOfSetting(setting));
    commands.push_back(std::move(command));
  }
  return commands;
}

}  // namespace headgate::app
