#include "headgate/app/serve/serve.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "headgate/app/runtime/file_checks.h"
#include "headgate/app/runtime/process.h"
#include "headgate/app/runtime/returned_memory.h"
#include "headgate/app/serve/fronts_part.h"
#include "headgate/app/settings/listen_address.h"
#include "headgate/app/settings/process_settings.h"
#include "headgate/app/settings/refusal_file.h"
#include "headgate/app/settings/rule_files.h"
#include "headgate/app/settings/setting_arguments.h"
#include "headgate/app/settings/store_settings.h"
#include "headgate/app/settings/tls_settings.h"
#include "headgate/app/settings/watch_settings.h"
#include "headgate/app/sidecar/proxy_part.h"
#include "headgate/files/file_hint.h"
#include "headgate/files/files.h"
#include "headgate/follow/mappings.h"
#include "headgate/rule/quote.h"

namespace headgate::app {
namespace {

FrontFiles ReadFrontFiles(Configuration& configuration) {
  const Settings& settings = configuration.settings;
  FrontFiles read;
  const auto read_secret = [&](std::string_view setting, const std::string& path) -> std::string {
    if (path.empty()) return {};
    auto secret = files::ReadFirstLine(path);
    if (secret.ok()) return *std::move(secret);
    configuration.AddProblem(setting, secret.status(), files::HintOnFile(path, ""));
    return {};
  };
  read.partition_secret =
      read_secret("partition_key_secret_file", settings.partition_key_secret_file);
  read.reservation_secret =
      read_secret("reservation_secret_file", settings.reservation_secret_file);
  const auto read_refusal = [&](std::string_view setting, const std::string& path,
                                const std::string& name) {
    if (path.empty() || read.refusals.contains(name)) return;
    RefusalFile file = ReadRefusalFile(path);
    for (const rule::Problem& problem : file.problems)
      configuration.AddProblem(setting, rule::PlaceAndMessage(problem), problem.hint);
    read.refusals[name] = std::move(file.refusal);
  };
  read_refusal("refusal_file", settings.refusal_file, "");
  for (const auto& [setting, addresses] :
       {std::pair("listen", &settings.listen), std::pair("listen_http", &settings.listen_http)}) {
    for (const std::string& text : *addresses) {
      const auto address = ParseListenAddress(text);
      if (address.ok()) read_refusal(setting, address->refusal_file, address->refusal_file);
    }
  }
  return read;
}

// Runs before anything starts, so that an unwritable snapshot is reported now and not when the
// server stops. Replaces the path by its target if it is a symbolic link.
void CheckSnapshot(Configuration& configuration) {
  std::string& path = configuration.settings.snapshot;
  const auto target = files::FollowLinks(path);
  if (target.ok()) path = *target;
  const absl::Status status = target.ok() ? snapshot::SnapshotFile::Check(path) : target.status();
  if (status.ok()) return;
  const std::string directory = std::filesystem::absolute(path).parent_path();
  const bool missing = absl::IsNotFound(status);
  configuration.AddProblem(
      "snapshot", status,
      missing ? fmt::format("mkdir -p {}", directory)
              : "name a file in a directory that this user may write: --snapshot PATH");
}

// Says what is wrong with the files of rules and mappings, so that people who must correct settings
// learn of it at once. A server reads these files when its settings are right.
void SayProblemsOfFiles(const Configuration& configuration, const Console& console) {
  const Settings& settings = configuration.settings;
  const watch::RulesOfPaths rules =
      watch::LoadPaths(settings.rules, settings.rule, settings.merge_domains == "yes");
  if (!rules.awaited) SayProblems(rules.result.problems, configuration, console);
  SayProblems(follow::ProblemsOfMappings(settings.auth), configuration, "auth", console);
}

}  // namespace

int Serve(const std::vector<std::string>& arguments, const Console& console) {
  HoldReload();
  const auto parsed = ParseSettingArguments(Command::kServe, arguments, console);
  if (!parsed) return kExitUsage;
  Configuration configuration = Configure(*parsed, ProcessEnvironment());
  UseDefaultsOfStore(configuration);
  std::optional<StoreSettings> store;
  FrontFiles front_files;
  std::optional<ProxySettings> proxy;
  if (!parsed->print_config) {
    ReadCredential(configuration);
    front_files = ReadFrontFiles(configuration);
    CheckSnapshot(configuration);
    CheckWatch(configuration);
    CheckAuditLog(configuration);
    store = ReadStoreSettings(configuration);
    CheckCertificates(configuration);
    CheckUsers(configuration);
    if (!configuration.settings.listen_proxy.empty()) proxy = ReadProxySettings(configuration);
  }
  if (SayProblems(configuration, console)) {
    if (!parsed->print_config) SayProblemsOfFiles(configuration, console);
    return kExitUsage;
  }
  if (parsed->print_config) {
    console.out << (parsed->json ? PrintConfigurationJson(configuration)
                                 : PrintConfiguration(configuration));
    return console.Finish(kExitOk);
  }
  MapLargeBuffers();
  FileNeeds needs = FileNeedsOf(configuration.settings);
  if (proxy) AddFileNeeds(*proxy, needs);
  return RunServer(needs, console, [&](const FilePlan& files, const Signals& signals) {
    Process process({.configuration = configuration,
                     .store = store,
                     .files = files,
                     .console = console,
                     .signals = signals});
    process.Add(std::make_unique<FrontsPart>(process, std::move(front_files)));
    if (proxy) process.Add(std::make_unique<ProxyPart>(process, *proxy));
    return process.Run();
  });
}

}  // namespace headgate::app
