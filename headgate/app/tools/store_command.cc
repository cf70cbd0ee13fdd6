#include "headgate/app/tools/store_command.h"

#include <fmt/format.h>

#include <csignal>

#include "headgate/app/settings/arguments.h"
#include "headgate/rule/duration.h"
#include "headgate/store/open/open_backend.h"

namespace headgate::app {
namespace {

constexpr std::string_view kUsage =
    "headgate store create-table 'dynamodb://TABLE?region=eu-west-1'";

// Whether the command or the table is at fault, and not the way to the store.
bool IsUsage(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status) ||
         absl::IsPermissionDenied(status);
}

}  // namespace

int Store(const std::vector<std::string>& arguments, const Console& console) {
  std::string ca_file;
  std::string timeout = "2m";
  std::vector<std::string> words;
  const ArgumentSpec spec{.command = "store",
                          .flags = {{"--ca-file", &ca_file}, {"--timeout", &timeout}},
                          .others = &words};
  if (!ParseArguments(spec, arguments, console)) return kExitUsage;
  if (words.size() != 2 || words[0] != "create-table") {
    console.Error("`headgate store` takes the word create-table and a URL", kUsage);
    return kExitUsage;
  }
  const auto patience = ParseTimeout(timeout, "--timeout 2m", console);
  if (!patience) return kExitUsage;
  store::BackendOptions options{.url = words[1], .ca_file = ca_file};
  options.calls = store::open::DefaultCalls(options.url);
  for (const store::OptionProblem& problem : store::open::CheckOptions(options)) {
    console.Error(problem.what, problem.hint.empty() ? kUsage : problem.hint);
    return kExitUsage;
  }
  std::signal(SIGPIPE, SIG_IGN);  // curl/client.h
  const auto made = store::open::CreateTable(options, *patience);
  if (!made.ok()) {
    console.Error(std::string(made.status().message()),
                  absl::IsPermissionDenied(made.status())
                      ? "docs/guides/strict-dynamodb.md lists the rights that this needs"
                      : kUsage);
    return IsUsage(made.status()) ? kExitUsage : kExitUnreachable;
  }
  console.out << *made << '\n';
  return kExitOk;
}

}  // namespace headgate::app
