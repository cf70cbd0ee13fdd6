#include "headgate/app/command_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "headgate/app/completion.h"
#include "headgate/app/help.h"
#include "headgate/app/serve/serve.h"
#include "headgate/app/settings/version.h"
#include "headgate/app/sidecar/sidecar.h"
#include "headgate/app/tools/bench.h"
#include "headgate/app/tools/check.h"
#include "headgate/app/tools/explain.h"
#include "headgate/app/tools/hash_password.h"
#include "headgate/app/tools/rules_command.h"
#include "headgate/app/tools/store_command.h"
#include "headgate/app/tools/validate.h"
#include "headgate/rule/problem.h"
#include "headgate/testing/scenario_command.h"

namespace headgate::app {
namespace {

bool IsHelpFlag(std::string_view word) { return word == "-h" || word == "--help"; }

int UnknownCommand(const std::string& name, const Console& console) {
  std::vector<std::string_view> commands = {"help"};
  commands.insert(commands.end(), CommandNames().begin(), CommandNames().end());
  const std::string_view nearest = rule::NearestWord(name, commands);
  console.Error(fmt::format("unknown command '{}'", name),
                nearest.empty() ? "`headgate help` lists the commands"
                                : fmt::format("did you mean '{}'?", nearest));
  return kExitUsage;
}

int Help(const std::vector<std::string>& arguments, const Console& console) {
  if (arguments.empty() || arguments == std::vector<std::string>{"help"}) {
    console.out << Overview();
    return kExitOk;
  }
  const auto other = std::find_if(arguments.begin() + 1, arguments.end(),
                                  [](const auto& argument) { return argument != "--all"; });
  if (other != arguments.end()) {
    console.Error(fmt::format("unknown argument '{}' to `headgate help`", *other),
                  "it takes one command: headgate help check, headgate help serve --all");
    return kExitUsage;
  }
  const bool all = arguments.size() > 1;
  const std::string text = HelpOf(arguments[0], all ? HelpLength::kAll : HelpLength::kScreen);
  if (text.empty()) return UnknownCommand(arguments[0], console);
  console.out << text;
  return kExitOk;
}

int Scenario(const std::vector<std::string>& arguments, const Console& console) {
  const auto flag = std::find_if(arguments.begin(), arguments.end(),
                                 [](const auto& a) { return a.starts_with("-"); });
  if (flag != arguments.end()) {
    console.Error(fmt::format("unknown argument '{}' to `headgate scenario`", *flag),
                  "headgate scenario FILES…");
    return kExitUsage;
  }
  if (arguments.empty()) {
    console.Error("no scenario is given", "headgate scenario FILES…");
    return kExitUsage;
  }
  return testing::RunScenarioFiles(
      arguments, console.out,
      [&](std::string_view what, std::string_view hint) { console.Error(what, hint); });
}

int Completion(const std::vector<std::string>& arguments, const Console& console) {
  const auto script = arguments.size() == 1 ? CompletionFor(arguments[0]) : std::nullopt;
  if (!script) {
    console.Error("`headgate completion` takes the name of a shell",
                  "headgate completion bash, zsh or fish");
    return kExitUsage;
  }
  console.out << *script;
  return kExitOk;
}

int Manual(const std::vector<std::string>& arguments, const Console& console) {
  if (!arguments.empty()) {
    console.Error(fmt::format("unknown argument '{}' to `headgate man`", arguments[0]),
                  "headgate man | man -l -");
    return kExitUsage;
  }
  console.out << ManualPage();
  return kExitOk;
}

int Version(const std::vector<std::string>& arguments, const Console& console) {
  if (arguments.empty()) {
    console.out << "headgate " << kVersion << '\n';
    return kExitOk;
  }
  if (arguments == std::vector<std::string>{"--json"}) {
    console.out << fmt::format("{{\"name\":\"headgate\",\"version\":\"{}\"}}\n", kVersion);
    return kExitOk;
  }
  console.Error(fmt::format("unknown argument '{}' to `headgate version`", arguments[0]),
                "headgate version [--json]");
  return kExitUsage;
}

// A server continues to serve if nobody reads the lines that it printed at its start. A server
// command that only prints settings or a plan checks its output itself.
bool IsServer(const std::vector<std::string>& arguments) {
  return !arguments.empty() && (arguments[0] == "serve" || arguments[0] == "sidecar") &&
         std::none_of(arguments.begin(), arguments.end(), IsHelpFlag);
}

int RunNamed(const std::vector<std::string>& arguments, const Console& console) {
  if (arguments.empty()) {
    console.err << Overview();
    return kExitUsage;
  }
  const std::string& name = arguments[0];
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (name == "help" || IsHelpFlag(name)) return Help(rest, console);
  if (name == "--version") return Version(rest, console);
  const auto commands = CommandNames();
  if (std::find(commands.begin(), commands.end(), name) == commands.end())
    return UnknownCommand(name, console);
  if (std::any_of(rest.begin(), rest.end(), IsHelpFlag)) {
    const bool all = std::find(rest.begin(), rest.end(), "--all") != rest.end();
    return Help(all ? std::vector<std::string>{name, "--all"} : std::vector<std::string>{name},
                console);
  }
  if (name == "serve") return Serve(rest, console);
  if (name == "sidecar") return Sidecar(rest, console);
  if (name == "check") return Check(rest, console);
  if (name == "validate") return Validate(rest, console);
  if (name == "explain") return Explain(rest, console);
  if (name == "rules") return Rules(rest, console);
  if (name == "bench") return Bench(rest, console);
  if (name == "store") return Store(rest, console);
  if (name == "completion") return Completion(rest, console);
  if (name == "man") return Manual(rest, console);
  if (name == "hash-password") return HashPassword(rest, console);
  if (name == "scenario") return Scenario(rest, console);
  return Version(rest, console);
}

}  // namespace

int RunCommandLine(const std::vector<std::string>& arguments, const Console& console) {
  const int code = RunNamed(arguments, console);
  return IsServer(arguments) ? code : console.Finish(code);
}

}  // namespace headgate::app
