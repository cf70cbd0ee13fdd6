#include "headgate/app/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "headgate/app/command_words.h"
#include "headgate/app/help.h"
#include "headgate/app/settings/settings.h"
#include "headgate/app/settings/version.h"

namespace headgate::app {
namespace {

// Puts a backslash before each of these characters.
std::string Escaped(std::string_view text, std::string_view characters) {
  std::string escaped;
  for (const char c : text) {
    if (characters.find(c) != characters.npos) escaped.push_back('\\');
    escaped.push_back(c);
  }
  return escaped;
}

// In single quotes for a POSIX shell and zsh. A quote in the text becomes '\'': it ends the quotes,
// is escaped, and begins them again.
std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += R"('\'')";
    } else {
      quoted.push_back(c);
    }
  }
  return quoted + "'";
}

std::string Joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

std::string NamesOf(const std::vector<CommandWords>& commands) {
  std::string names = "help";
  for (const CommandWords& command : commands) names.append(" ").append(command.name);
  return names;
}

constexpr std::string_view kBashScript =
    R"sh(# Completes the words of headgate in bash: eval "$(headgate completion bash)"
_headgate() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} words= paths= none=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W {} -- "$word"))
    return
  fi
  case "${{COMP_WORDS[1]}} ${{COMP_WORDS[COMP_CWORD-1]}}" in
{}    'help '*) words={};;
  esac
  if [ -z "$words$paths$none" ]; then
    case "$word" in
      -*) case "${{COMP_WORDS[1]}}" in
{}      esac;;
      *) case "${{COMP_WORDS[1]}}" in
{}        *) paths=1;;
      esac;;
    esac
  fi
  if [ -n "$words" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  elif [ -n "$paths" ]; then
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}}
complete -F _headgate headgate
)sh";

std::string Bash(const std::vector<CommandWords>& commands) {
  std::string values;
  std::string flags;
  std::string operands;
  for (const CommandWords& command : commands) {
    std::string names;
    for (const CommandFlag& flag : command.flags) {
      names.append(names.empty() ? "" : " ").append(flag.name);
      if (!flag.choices.empty()) {
        values += fmt::format("    '{} {}') words={};;\n", command.name, flag.name,
                              Quoted(Joined(flag.choices)));
      } else if (!flag.argument.empty()) {
        values += fmt::format("    '{} {}') {};;\n", command.name, flag.name,
                              flag.takes_path ? "paths=1" : "none=1");
      }
    }
    flags += fmt::format("      {}) words={};;\n", command.name, Quoted(names));
    if (!command.choices.empty()) {
      operands +=
          fmt::format("        {}) words={};;\n", command.name, Quoted(Joined(command.choices)));
    }
  }
  return fmt::format(kBashScript, Quoted(NamesOf(commands)), values, Quoted(NamesOf(commands)),
                     flags, operands);
}

std::string Zsh(const std::vector<CommandWords>& commands) {
  std::string described;
  std::string cases;
  for (const CommandWords& command : commands) {
    described +=
        fmt::format("    {}\n", Quoted(fmt::format("{}:{}", command.name, command.summary)));
    cases += fmt::format("    {})\n      _arguments", command.name);
    for (const CommandFlag& flag : command.flags) {
      std::string spec = fmt::format("*{}[{}]", flag.name, Escaped(flag.help, "[]:\\"));
      if (!flag.choices.empty()) {
        spec += fmt::format(":{}:({})", flag.argument, Joined(flag.choices));
      } else if (!flag.argument.empty()) {
        spec +=
            fmt::format(":{}:{}", Escaped(flag.argument, ":\\"), flag.takes_path ? "_files" : " ");
      }
      cases += fmt::format(" \\\n        {}", Quoted(spec));
    }
    cases +=
        fmt::format(" \\\n        '*:{}';;\n",
                    command.choices.empty() ? "file:_files"
                                            : fmt::format("word:({})", Joined(command.choices)));
  }
  return fmt::format(R"(#compdef headgate
# Completes the words of headgate in zsh: a file _headgate in a folder of $fpath.
_headgate() {{
  local -a commands
  commands=(
    'help:the help of a command'
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  words=("$words[1]" "${{(@)words[3,-1]}}")
  (( CURRENT-- ))
  case $command in
    help) _describe command commands;;
{}  esac
}}
if [ "$funcstack[1]" = _headgate ]; then
  _headgate "$@"
else
  compdef _headgate headgate
fi
)",
                     described, cases);
}

std::string Fish(const std::vector<CommandWords>& commands) {
  const auto quoted = [](std::string_view text) { return "'" + Escaped(text, "'\\") + "'"; };
  std::string script =
      R"(# Completes the words of headgate in fish: headgate completion fish | source
complete -c headgate -f -n __fish_use_subcommand -a help -d 'the help of a command'
)";
  for (const CommandWords& command : commands) {
    script += fmt::format("complete -c headgate -f -n __fish_use_subcommand -a {} -d {}\n",
                          command.name, quoted(command.summary));
  }
  script += fmt::format("complete -c headgate -f -n '__fish_seen_subcommand_from help' -a {}\n",
                        quoted(NamesOf(commands)));
  for (const CommandWords& command : commands) {
    if (!command.choices.empty()) {
      script += fmt::format("complete -c headgate -f -n '__fish_seen_subcommand_from {}' -a {}\n",
                            command.name, quoted(Joined(command.choices)));
    }
    for (const CommandFlag& flag : command.flags) {
      script += fmt::format("complete -c headgate -n '__fish_seen_subcommand_from {}' -l {}",
                            command.name, flag.name.substr(2));
      if (!flag.choices.empty()) {
        script += fmt::format(" -x -a {}", quoted(Joined(flag.choices)));
      } else if (!flag.argument.empty()) {
        script += flag.takes_path ? " -r -F" : " -x";
      }
      script += fmt::format(" -d {}\n", quoted(flag.help));
    }
  }
  return script;
}

// A line of text. troff would take a dot or an apostrophe at its beginning for a command.
std::string TroffLine(std::string_view line) {
  std::string out = line.starts_with('.') || line.starts_with('\'') ? "\\&" : "";
  for (const char c : line) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out.push_back(c);
    }
  }
  return out + "\n";
}

// Text as it is, with its line breaks.
std::string Verbatim(std::string_view text) {
  std::string out = ".nf\n";
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    out += line.empty() ? "\n" : TroffLine(line);
  }
  return out + ".fi\n";
}

}  // namespace

std::optional<std::string> CompletionFor(std::string_view shell) {
  const std::vector<CommandWords> commands = AllCommandWords();
  if (shell == "bash") return Bash(commands);
  if (shell == "zsh") return Zsh(commands);
  if (shell == "fish") return Fish(commands);
  return std::nullopt;
}

std::string ManualPage() {
  std::string page = fmt::format(
      ".TH HEADGATE 1 \"\" \"Headgate {}\" \"User commands\"\n.SH NAME\nheadgate \\- decides for "
      "every request whether it may pass now\n.SH SYNOPSIS\n.B headgate\n.I COMMAND\n.RI [ OPTIONS "
      "]\n.SH DESCRIPTION\n",
      kVersion);
  page += Verbatim(Overview());
  page += ".SH COMMANDS\n";
  for (const std::string& name : CommandNames())
    page += fmt::format(".SS headgate {}\n{}", Escaped(name, ""), Verbatim(HelpOf(name)));
  page +=
      ".SH SETTINGS\nIn a settings file without the dashes; in the environment as HEADGATE_NAME.\n";
  const auto add = [&](const Setting& setting) {
    page += fmt::format(".TP\n.B {}", TroffLine(FlagOf(setting)));
    page += TroffLine(setting.help);
    page += TroffLine(setting.advice);
  };
  for (const Setting& setting : AllSettings(Command::kServe)) add(setting);
  page += ".SH SETTINGS OF A SIDECAR ALONE\n";
  for (const Setting& setting : AllSettings(Command::kSidecar)) {
    if (setting.of == Command::kSidecar) add(setting);
  }
  page +=
      ".SH FILES\n.TP\n.I headgate.yaml\nThe settings of serve, if \\-\\-config names no other "
      "file.\n";
  page += ".SH SEE ALSO\n.BR redis\\-cli (1)\n";
  return page;
}

}  // namespace headgate::app
