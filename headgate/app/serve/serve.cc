#include "headgate/app/serve/serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "headgate/app/runtime/instance.h"
#include "headgate/app/runtime/live_rules.h"
#include "headgate/app/runtime/net_metrics.h"
#include "headgate/app/runtime/resident_memory.h"
#include "headgate/app/runtime/run_loop.h"
#include "headgate/app/runtime/server_process.h"
#include "headgate/app/serve/fronts.h"
#include "headgate/app/settings/listen_address.h"
#include "headgate/app/settings/process_settings.h"
#include "headgate/app/settings/refusal_file.h"
#include "headgate/app/settings/rule_files.h"
#include "headgate/app/settings/setting_arguments.h"
#include "headgate/app/settings/store_settings.h"
#include "headgate/app/settings/tls_settings.h"
#include "headgate/app/settings/version.h"
#include "headgate/app/settings/watch_settings.h"
#include "headgate/files/file_hint.h"
#include "headgate/files/files.h"
#include "headgate/follow/mappings.h"
#include "headgate/follow/users.h"
#include "headgate/rule/quote.h"
#include "headgate/watch/file/file_journal.h"

namespace headgate::app {
namespace {

// Connections are reserved for this many servers of a store.
constexpr uint64_t kStoreServers = 8;

// The secrets of files; empty if no file is configured.
struct Secrets {
  std::string partition_key;
  std::string reservation;
};

Secrets ReadSecrets(Configuration& configuration) {
  const auto read = [&](std::string_view setting, const std::string& path) -> std::string {
    if (path.empty()) return {};
    auto secret = files::ReadFirstLine(path);
    if (secret.ok()) return *std::move(secret);
    configuration.AddProblem(setting, secret.status(), files::HintOnFile(path, ""));
    return {};
  };
  const Settings& settings = configuration.settings;
  return {.partition_key = read("partition_key_secret_file", settings.partition_key_secret_file),
          .reservation = read("reservation_secret_file", settings.reservation_secret_file)};
}

// The bodies of refusals that the settings and the addresses name, by file.
using Refusals = std::map<std::string, std::shared_ptr<const rule::Refusal>>;
Refusals ReadRefusals(Configuration& configuration) {
  Refusals refusals;
  const auto read = [&](std::string_view setting, const std::string& path,
                        const std::string& name) {
    if (path.empty() || refusals.contains(name)) return;
    RefusalFile file = ReadRefusalFile(path);
    for (const rule::Problem& problem : file.problems)
      configuration.AddProblem(setting, rule::PlaceAndMessage(problem), problem.hint);
    refusals[name] = std::move(file.refusal);
  };
  const Settings& settings = configuration.settings;
  read("refusal_file", settings.refusal_file, "");
  for (const auto& [setting, addresses] :
       {std::pair("listen", &settings.listen), std::pair("listen_http", &settings.listen_http)}) {
    for (const std::string& text : *addresses) {
      const auto address = ParseListenAddress(text);
      if (address.ok()) read(setting, address->refusal_file, address->refusal_file);
    }
  }
  return refusals;
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

FileNeeds FileNeedsOf(const Settings& settings) {
  const uint64_t store_servers = settings.store.empty() ? 0 : kStoreServers;
  return {
      .threads = ThreadsOf(settings),
      .addresses = settings.listen.size() + settings.listen_resp.size() +
                   settings.listen_http.size() + settings.listen_spoe.size() + 1,
      .store_connections = store_servers * settings.store_connections,
      .store_connections_min = store_servers,
      .connections_max = settings.max_connections,
      .admin_connections_max = settings.admin_listen.empty() ? 0 : settings.max_admin_connections};
}

void CheckAuditLog(Configuration& configuration) {
  const std::string& path = configuration.settings.audit_log;
  if (path.empty()) return;
  const absl::Status status = watch::file::FileJournal::Check(path);
  if (!status.ok())
    configuration.AddProblem("audit_log", status,
                             "name a file in a directory that this user may write");
}

void CheckUsers(Configuration& configuration) {
  const std::string& path = configuration.settings.users_file;
  if (path.empty()) return;
  const auto text = follow::ReadUsers(path);
  if (!text.ok()) {
    configuration.AddProblem(
        "users_file", text.status(),
        files::HintOnFile(path, "name a file of users; docs/reference/users.md shows one"));
  } else if (const auto users = follow::ParseUsers(path, *text); !users.ok()) {
    configuration.AddProblem("users_file", users.status(),
                             "`headgate hash-password` makes the hash of a password");
  }
}

// Says what is wrong with the files of rules and mappings, so that people who must correct settings
// learn of it at once. A server reads these files when its settings are right.
void SayProblemsOfFiles(const Configuration& configuration, const Console& console) {
  const Settings& settings = configuration.settings;
  const RulesFromPaths rules =
      LoadPaths(settings.rules, settings.rule, settings.merge_domains == "yes");
  if (!rules.awaited) SayProblems(rules.result.problems, configuration, console);
  SayProblems(follow::ProblemsOfMappings(settings.auth), configuration, "auth", console);
}

// The running server and everything that it owns.
class Process : public ServerProcess {
 public:
  Process(const Configuration& configuration, const std::optional<StoreSettings>& store,
          Secrets secrets, Refusals refusals, const FilePlan& files, const Console& console,
          const Signals& signals)
      : ServerProcess(configuration.settings, files, console, signals),
        configuration_(configuration),
        settings_(configuration.settings),
        store_(store),
        rules_(settings_, instance_.name, engine_, control_, log_),
        front_options_(settings_, engine_, access_),
        mappings_(settings_.auth, settings_.auth_header, front_options_.mappings, control_, log_),
        users_(settings_.users_file, access_, control_, log_) {
    front_options_.log = &log_;
    front_options_.partition_secret = std::move(secrets.partition_key);
    front_options_.refusals = std::move(refusals);
    front_options_.reservation_secret = std::move(secrets.reservation);
    front_options_.figures = [this] { return Figures(); };
    engine_.metrics().AddCollector([this](observe::Sink& sink) {
      rules_.Collect(sink);
      CollectConnections(server_->counters(), sink);
      CollectSessions(fronts_, sink);
      std::vector<const http::http2::Counters*> http2;
      for (const auto& fronts : fronts_) http2.push_back(&fronts->http2_counters());
      CollectHttp2(http2, sink);
      CollectAuth(front_options_, fronts_, sink);
      mappings_.Collect(sink);
      follow::CollectCertificates({&certificates_.files()}, sink);
      users_.Collect(sink);
      if (shared_ != nullptr) shared_->Collect(sink);
    });
  }

  ~Process() { EndLoops(); }

  int Run() {
    LogLoweredConnections(files_, settings_.max_connections,
                          "raise `ulimit -n`, or lower max_connections", log_);
    if (!LoadRules() || !LoadCertificates() || !LoadUsers() || !MakeFronts()) return kExitUsage;
    if (!configuration_.file.empty()) log_.Info("settings.loaded", {{"file", configuration_.file}});
    if (settings_.passthrough == "yes") engine_.SetPassthrough(true, {});
    if (!ListenOnAll()) return kExitUnreachable;
    server_->Start();
    listeners_.Announce();
    log_.Info("server.started", {{"version", kVersion}, {"threads", uint64_t{threads_}}});
    RunUntilStopped();
    return Stop();
  }

 private:
  using Chooser = std::function<net::SessionChooser(Fronts&, const Fronts::Form&)>;

  front::resp::ServerFigures Figures() {
    const net::Counters connections = server_->counters();
    front::resp::ServerFigures figures{
        .uptime = system_clock_.BootNow() - started_at_,
        .memory_bytes = ResidentBytes(),
        .connections_open = connections.connections_open,
        .connections_max = settings_.max_connections,
        .connections_accepted = connections.connections_accepted,
        .connections_refused = connections.refused_total_limit + connections.refused_address_limit,
        .buckets = engine_.store().stats().buckets};
    for (const auto& front : fronts_) figures.commands += front->resp_counters().commands.value();
    return figures;
  }

  bool LoadRules() {
    std::vector<rule::Problem> problems = rules_.LoadFirst();
    SayProblems(problems, configuration_, console_);
    const std::vector<rule::Problem> mapping_problems = mappings_.LoadFirst();
    SayProblems(mapping_problems, configuration_, "auth", console_);
    return problems.empty() && mapping_problems.empty();
  }

  bool LoadUsers() {
    const absl::Status status = users_.LoadFirst();
    if (!status.ok()) {
      console_.Error(fmt::format("users_file: {}", std::string(status.message())),
                     "`headgate hash-password` makes the hash of a password");
    }
    return status.ok();
  }

  bool MakeFronts() {
    editor_.emplace(rules_.editor(), control_);
    front_options_.editor = &*editor_;
    if (!OpenStore(store_, instance_)) return false;
    if (shared_ != nullptr) {
      shared_->ShowRules(rules_.in_force());
      rules_.OnInForce([this](const rule::RulesInForce& rules) { shared_->ShowRules(rules); });
      front_options_.store_problem = [this] { return shared_->problem(); };
    } else if (const std::string unused = ChangedSettings(configuration_, IsOfStore);
               !unused.empty()) {
      log_.Warning(
          "settings.ignored",
          {{"settings", unused},
           {"effect",
            std::string_view(
                "without a store these settings do nothing: each instance counts by itself")},
           {"hint", std::string_view("set store, or remove these settings")}});
    }
    for (uint32_t i = 0; i < threads_; ++i) {
      fronts_.push_back(
          std::make_unique<Fronts>(front_options_, shared_.get(), server_->loop(i), i));
    }
    return true;
  }

  bool ListenOnAll() {
    const auto listen = [&](const std::vector<std::string>& addresses, const Chooser& chooser) {
      return std::all_of(addresses.begin(), addresses.end(), [&](const std::string& text) {
        const ListenAddress address = *ParseListenAddress(text);
        const Fronts::Form form{.dialect = address.fields, .refusal_file = address.refusal_file};
        return listeners_.Listen(address, Listeners::Reveals::kState,
                                 [&](uint32_t loop) { return chooser(*fronts_[loop], form); });
      });
    };
    const auto resp = [](Fronts& fronts, const Fronts::Form&) { return fronts.OnlyResp(); };
    if (!listen(settings_.listen, &Fronts::All) || !listen(settings_.listen_resp, resp) ||
        !listen(settings_.listen_http, &Fronts::OnlyHttp) ||
        !listen(settings_.listen_spoe, &Fronts::OnlySpoe))
      return false;
    return settings_.admin_listen.empty() ||
           listeners_.ListenForAdmin(
               {.address = *ParseListenAddress(settings_.admin_listen),
                .connections_max = static_cast<uint32_t>(files_.admin_connections_max),
                .is_default = configuration_.OriginOf("admin_listen") == "default"},
               [&](uint32_t loop) { return fronts_[loop]->Admin(); });
  }

  // Runs until the signal to stop, or for at most this long.
  void RunUntilStopped(std::optional<base::Duration> at_most = std::nullopt) {
    RunLoop(control_, signals_, {.tick = [this] { Tick(); }, .reload = [this] { Reload(); }},
            at_most);
  }

  void Reload() {
    rules_.Reload();
    mappings_.Reload();
    certificates_.Reload();
    users_.Reload();
  }

  void Tick() {
    TickParts();
    instance_watch_.Step(shared_ != nullptr ? shared_->instances() : rules_.instances(),
                         rules_.instances_error());
  }

  int Stop() {
    front_options_.draining.store(true, std::memory_order_relaxed);
    log_.Info("server.drain_began",
              {{"delay", settings_.drain_delay}, {"timeout", settings_.drain_timeout}});
    // Requests are served as before, but /readyz answers 503. A second stop signal ends the wait.
    RunUntilStopped(settings_.drain_delay);
    editor_->End();  // edits of rules in progress need the control loop
    const bool all = server_->Drain(settings_.drain_timeout);
    access_.End();
    shared_ != nullptr ? shared_->Leave(*server_) : server_->Stop();
    for (const auto& front : fronts_) front->LeaveLoop();
    const bool saved = engine_.WriteLastSnapshot();
    log_.Info("server.stopped", {{"all_requests_finished", all}});
    return saved ? kExitOk : kExitNotSaved;
  }

  const Configuration& configuration_;
  const Settings& settings_;
  const std::optional<StoreSettings>& store_;  // empty: each instance counts by itself
  const base::BootTime started_at_ = system_clock_.BootNow();
  InstanceWatch instance_watch_{log_};
  const Instance instance_{.name = RandomInstanceName(),
                           .counted_elsewhere = [this] { return rules_.instances(); }};
  LiveRules rules_;
  std::optional<EditorThread> editor_;
  FrontOptions front_options_;
  follow::Mappings mappings_;
  follow::Users users_;
  std::vector<std::unique_ptr<Fronts>> fronts_;
};

}  // namespace

int Serve(const std::vector<std::string>& arguments, const Console& console) {
  HoldReload();
  const auto parsed = ParseSettingArguments(Command::kServe, arguments, console);
  if (!parsed) return kExitUsage;
  Configuration configuration = Configure(*parsed, ProcessEnvironment());
  UseDefaultsOfStore(configuration);
  std::optional<StoreSettings> store;
  Secrets secrets;
  Refusals refusals;
  if (!parsed->print_config) {
    ReadCredential(configuration);
    secrets = ReadSecrets(configuration);
    refusals = ReadRefusals(configuration);
    CheckSnapshot(configuration);
    CheckWatch(configuration);
    CheckAuditLog(configuration);
    store = ReadStoreSettings(configuration);
    CheckCertificates(configuration);
    CheckUsers(configuration);
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
  const FileNeeds needs = FileNeedsOf(configuration.settings);
  return RunServer(needs, HintOnFewFiles(needs), console,
                   [&](const FilePlan& files, const Signals& signals) {
                     return Process(configuration, store, std::move(secrets), std::move(refusals),
                                    files, console, signals)
                         .Run();
                   });
}

}  // namespace headgate::app
