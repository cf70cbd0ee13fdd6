#include "headgate/app/runtime/process.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "headgate/app/runtime/net_metrics.h"
#include "headgate/app/runtime/run_loop.h"
#include "headgate/app/settings/listen_address.h"
#include "headgate/app/settings/process_settings.h"
#include "headgate/app/settings/rule_files.h"
#include "headgate/app/settings/tls_settings.h"
#include "headgate/app/settings/version.h"
#include "headgate/store/open/open_backend.h"

namespace headgate::app {
namespace {

// Connections are reserved for this many servers of a store.
constexpr uint64_t kStoreServers = 8;
// How long a process that takes over waits for its store. The old process waits three times as long
// for it.
constexpr base::Duration kStoreWaitMax = std::chrono::seconds(5);
// The last part of a drain, in which requests that still wait get their refusals.
constexpr base::Duration kLastWordsMax = std::chrono::seconds(1);

net::ServerOptions ServerOptionsOf(const Settings& settings, const FilePlan& files) {
  return {
      .threads = ThreadsOf(settings),
      .connections_max = static_cast<uint32_t>(files.connections_max),
      .connections_per_address_max = static_cast<uint32_t>(settings.max_connections_per_address),
      .refusals_max = static_cast<uint32_t>(files.refusals_max),
      .request_timeout = settings.request_timeout,
      .idle_timeout = settings.idle_timeout,
      .write_timeout = settings.write_timeout,
      .buffer_bytes_max = settings.max_buffer_bytes};
}

follow::RulesOptions RulesOptionsOf(const Settings& settings, const std::string& instance,
                                    Engine& engine) {
  follow::RulesOptions options{
      .places = settings.rules,
      .sources = {.copy = settings.watch_copy,
                  .password = settings.watch_password,
                  .session_timeout = settings.watch_session_timeout,
                  .instance = instance,
                  .version = std::string(kVersion),
                  .started = engine.clock().source().WallNow(),
                  .store = settings.store},
      .one_liners = settings.rule,
      .merge_domains = settings.merge_domains == "yes",
      .audit_log = settings.audit_log,
      .limits = settings.store.empty() ? &engine.store().limits() : nullptr,
      .log_requests_max = store::open::LogRequestsMax(settings.store)};
  options.places.insert(options.places.end(), settings.watch.begin(), settings.watch.end());
  return options;
}

rule::OnStoreFailure OnStoreFailureOf(const Settings& settings) {
  if (settings.on_store_failure == "allow") return rule::OnStoreFailure::kAllow;
  if (settings.on_store_failure == "deny") return rule::OnStoreFailure::kDeny;
  return rule::OnStoreFailure::kLocal;
}

std::string_view NameOfProcess(Command command) {
  return command == Command::kServe ? "server" : "sidecar";
}

std::string_view TitleOf(Command command) {
  return command == Command::kServe ? "Headgate, the admin address"
                                    : "Headgate, the admin address of a sidecar";
}

}  // namespace

Process::Process(const Options& options)
    : options_(options),
      settings_(options.configuration.settings),
      name_(NameOfProcess(options.configuration.command)),
      loop_count_(ThreadsOf(settings_)),
      log_(LogOptionsOf(settings_), system_clock_),
      connection_watch_(log_, options.files.connections_lowered),
      engine_(settings_, loop_count_, system_clock_, log_, spare_files_),
      certificates_(TlsServerOptionsOf(settings_), control_, log_),
      access_({.credential = settings_.credential,
               .users =
                   settings_.users_file.empty() ? nullptr : std::make_shared<access::UserTable>()}),
      users_(settings_.users_file, access_, control_, log_),
      instance_{.name = shared_store::RandomInstanceName(),
                .counted_elsewhere = [this] { return rules_ ? rules_->instances() : 0; }},
      admin_(settings_, std::string(TitleOf(options.configuration.command)), AdminSourcesOf(),
             access_, engine_),
      server_(std::in_place, ServerOptionsOf(settings_, options.files), engine_.clock(),
              spare_files_),
      listeners_(settings_.handover, *server_, certificates_, access_, options.console, log_) {
  if (options.has_rules)
    rules_.emplace(RulesOptionsOf(settings_, instance_.name, engine_), engine_.limiter(),
                   engine_.clock(), control_, log_);
  engine_.metrics().AddCollector([this](observe::Sink& sink) { Collect(sink); });
}

Process::~Process() {
  listeners_.EndHandover();
  server_->Stop();
  access_.End();
  LeaveLoops();
  shared_.reset();
  server_.reset();
}

front::admin::AdminSources Process::AdminSourcesOf() {
  const auto readiness = [this]() -> absl::Status {
    if (draining_.load(std::memory_order_relaxed))
      return absl::UnavailableError(fmt::format("draining: the {} is going down", name_));
    return shared_ != nullptr ? shared_->problem() : absl::OkStatus();
  };
  front::admin::AdminSources sources{.rules = {},
                                     .metrics = [this] { return engine_.metrics().Render(); },
                                     .readiness = readiness};
  if (!options_.has_rules) return sources;
  sources.rules = [this] { return engine_.limiter().rules(); };
  sources.passthrough = [this] { return engine_.limiter().passthrough(); };
  return sources;
}

int Process::Run() {
  LogLoweredConnections(options_.files, settings_.max_connections,
                        settings_.listen_proxy.empty()
                            ? "raise `ulimit -n`, or lower max_connections"
                            : "raise `ulimit -n`, or lower max_connections or upstream_connections",
                        log_);
  if (!Load() || !OpenStore()) return kExitUsage;
  if (!FindPredecessor()) return kExitUnreachable;
  const std::string& file = configuration().file;
  if (!file.empty()) log_.Info("settings.loaded", {{"file", file}});
  engine_.TellPassthrough([this] {
    for (const auto& part : parts_) part->OnPassthrough();
  });
  if (settings_.passthrough == "yes") engine_.SetPassthrough(true, {});
  Begin();
  if (!ListenOnAll()) return kExitUnreachable;
  if (listeners_.has_predecessor()) listeners_.Announce();
  AwaitStore();
  server_->Start();
  listeners_.Announce();
  if (!AwaitSuccessor()) return kExitUnreachable;
  log_.Info(fmt::format("{}.started", name_),
            {{"version", kVersion}, {"threads", uint64_t{loop_count_}}});
  RunUntilStopped();
  return Stop();
}

bool Process::Load() {
  if (!LoadRules() || !LoadUsers()) return false;
  const absl::Status status = certificates_.LoadFirst();
  if (!status.ok()) console().Error(std::string(status.message()), "see tls_certificate_file");
  return status.ok();
}

// The problems of rules and mappings are said together.
bool Process::LoadRules() {
  bool ok = true;
  if (rules_) {
    const std::vector<rule::Problem> problems = rules_->LoadFirst();
    SayProblems(problems, configuration(), console());
    ok = problems.empty();
    if (ok) editor_.emplace(rules_->editor(), control_);
  }
  for (const auto& part : parts_) ok = part->Load() && ok;
  return ok;
}

bool Process::LoadUsers() {
  const absl::Status status = users_.LoadFirst();
  if (!status.ok()) {
    console().Error(fmt::format("users_file: {}", std::string(status.message())),
                    "`headgate hash-password` makes the hash of a password");
  }
  return status.ok();
}

bool Process::OpenStore() {
  if (!options_.store) {
    if (const std::string unused = ChangedSettings(configuration(), IsOfStore); !unused.empty()) {
      log_.Warning(
          "settings.ignored",
          {{"settings", unused},
           {"effect",
            std::string_view(
                "without a store these settings do nothing: each instance counts by itself")},
           {"hint", std::string_view("set store, or remove these settings")}});
    }
    return true;
  }
  auto shared = shared_store::SharedStores::Make(
      {.backend = options_.store->backend,
       .naming = options_.store->naming,
       .on_store_failure = OnStoreFailureOf(settings_),
       .sharing = settings_.sharing == "leased" ? rule::Sharing::kLeased : rule::Sharing::kExact,
       .instance = instance_,
       .version = std::string(kVersion)},
      {.store = engine_.store(), .limiter = engine_.limiter(), .clock = engine_.clock()}, *server_,
      loop_count_, log_);
  if (!shared.ok()) {
    console().Error(std::string(shared.status().message()));
    return false;
  }
  shared_ = *std::move(shared);
  if (!rules_) return true;
  shared_->ShowRules(rules_->in_force());
  rules_->OnInForce([this](const rule::RulesInForce& rules) { shared_->ShowRules(rules); });
  return true;
}

// The old process serves, with rules or without. A new one that has rules to follow but none in
// force would refuse all requests, so it does not take over.
bool Process::FindPredecessor() {
  if (!listeners_.FindPredecessor()) return false;
  if (!listeners_.has_predecessor() || !rules_ || engine_.limiter().rules() != nullptr) return true;
  console().Error("--handover: this process has found no rules; the old one continues to serve",
                  "see the log above; start it again when the source of the rules can be read, or "
                  "give both processes --watch-copy");
  return false;
}

void Process::Begin() {
  for (uint32_t i = 0; i < loop_count_; ++i) {
    checkers_.push_back(shared_ == nullptr
                            ? std::make_unique<limiter::Checker>(engine_.limiter(), i)
                            : std::make_unique<limiter::Checker>(
                                  engine_.limiter(), i, shared_->decider(i), shared_->naming()));
    admin_fronts_.push_back(
        std::make_unique<AdminFront>(admin_, editor_ ? &*editor_ : nullptr, server_->loop(i)));
  }
  for (const auto& part : parts_) {
    part->Begin();
    for (uint32_t i = 0; i < loop_count_; ++i) part->AddRoutes(admin_fronts_[i]->router(), i);
  }
}

bool Process::ListenOnAll() {
  if (!std::ranges::all_of(parts_, [](const auto& part) { return part->Listen(); })) return false;
  if (settings_.admin_listen.empty()) return true;
  return listeners_.ListenForAdmin(
      {.address = *ParseListenAddress(settings_.admin_listen),
       .connections_max = static_cast<uint32_t>(options_.files.admin_connections_max),
       .is_default = !configuration().origins.contains("admin_listen")},
      [this](uint32_t loop) { return admin_fronts_[loop]->Chooser(); });
}

void Process::AwaitStore() {
  if (!listeners_.has_predecessor() || shared_ == nullptr) return;
  const absl::Status status = shared_->AwaitStore(kStoreWaitMax);
  if (status.ok()) return;
  log_.Warning("handover.store_not_awaited",
               {{"waited", kStoreWaitMax},
                {"reason", std::string(status.message())},
                {"effect", std::string_view("this process takes over all the same, and decides "
                                            "without the store until it answers")}});
}

bool Process::AwaitSuccessor() {
  const auto state = [this] {
    handover::SidecarState all;
    for (const auto& part : parts_) part->HandOver(all);
    return all;
  };
  const auto take_over = [this](const handover::SidecarState& taken) {
    for (const auto& part : parts_) part->TakeOver(taken);
  };
  return listeners_.AwaitSuccessor(control_, state, take_over);
}

void Process::RunUntilStopped(std::optional<base::Duration> at_most) {
  RunLoop(control_, options_.signals,
          {.tick = [this] { Tick(); },
           .reload = [this] { Reload(); },
           .is_over = [this] { return listeners_.has_successor(); }},
          at_most);
}

void Process::Reload() {
  if (rules_) rules_->Reload();
  certificates_.Reload();
  users_.Reload();
  for (const auto& part : parts_) part->Reload();
}

void Process::Tick() {
  engine_.Tick();
  const base::Instant now = engine_.clock().Now();
  const net::Counters counters = server_->counters();
  connection_watch_.Step(counters, now);
  uint64_t idle_bytes = 0;
  for (const auto& part : parts_) {
    part->Tick(now);
    idle_bytes = std::max(idle_bytes, part->idle_connection_bytes());
  }
  returned_memory_.Step(counters.buffer_bytes + counters.connections_open * idle_bytes,
                        counters.buffers_shed);
  if (shared_ != nullptr) shared_->Tick(now);
  instance_watch_.Step(shared_ != nullptr ? shared_->instances() : instance_.counted_elsewhere(),
                       rules_ ? rules_->instances_error() : "");
  (void)spare_files_.Refill();
}

int Process::Stop() {
  listeners_.EndHandover();
  draining_.store(true, std::memory_order_relaxed);
  const bool has_successor = listeners_.has_successor();
  const base::Duration timeout = settings_.drain_timeout;
  if (has_successor && shared_ != nullptr) shared_->LeaveCount();
  log_.Info(
      fmt::format("{}.drain_began", name_),
      {{"delay", settings_.drain_delay}, {"timeout", timeout}, {"has_successor", has_successor}});
  // Requests are served as before, but /readyz answers 503. A second stop signal ends the wait.
  if (!has_successor) RunUntilStopped(settings_.drain_delay);
  if (editor_) editor_->End();  // edits of rules in progress need the control loop
  const auto begun = [this, timeout, began = engine_.clock().Now()] {
    const base::Instant end = began + (timeout - std::min(timeout / 4, kLastWordsMax));
    for (const auto& part : parts_) part->EndWaiting(end);
  };
  const bool all =
      has_successor ? server_->LeaveToSuccessor(timeout, begun) : server_->Drain(timeout, begun);
  access_.End();
  shared_ != nullptr ? shared_->Leave(*server_) : server_->Stop();
  LeaveLoops();
  const bool saved = engine_.WriteLastSnapshot();
  log_.Info(fmt::format("{}.stopped", name_), {{"all_requests_finished", all}});
  return saved ? kExitOk : kExitNotSaved;
}

void Process::LeaveLoops() {
  for (const auto& part : parts_) part->LeaveLoops();
  for (const auto& admin : admin_fronts_) admin->LeaveLoop();
}

void Process::Collect(observe::Sink& sink) {
  PartSums sums;
  sums.certificates.push_back(&certificates_.files());
  for (const auto& admin : admin_fronts_) sums.http2.push_back(&admin->http2_counters());
  for (const auto& part : parts_) part->Collect(sink, sums);
  CollectConnections(server_->counters(), sink);
  CollectHttp2(sums.http2, sink);
  follow::CollectCertificates(sums.certificates, sink);
  if (rules_) rules_->Collect(sink);
  users_.Collect(sink);
  if (shared_ != nullptr) shared_->Collect(sink);
  if (!sums.judges) return;
  follow::CollectMappings(sums.mappings, sink);
  sums.verdicts.Report(sink);
  sink.Set(observe::Metric::kAuthForgotten, {}, sums.repeats_forgotten);
}

FileNeeds FileNeedsOf(const Settings& settings) {
  const uint64_t store_servers = settings.store.empty() ? 0 : kStoreServers;
  return {
      .threads = ThreadsOf(settings),
      .addresses = settings.listen.size() + settings.listen_resp.size() +
                   settings.listen_http.size() + settings.listen_spoe.size() +
                   settings.listen_proxy.size() + 1,
      .store_connections = store_servers * settings.store_connections,
      .store_connections_min = store_servers,
      .connections_max = settings.max_connections,
      .admin_connections_max = settings.admin_listen.empty() ? 0 : settings.max_admin_connections};
}

int RunServer(const FileNeeds& needs, const Console& console,
              absl::FunctionRef<int(const FilePlan&, const Signals&)> run) {
  const std::string hint = HintOnFewFiles(needs);
  const auto files = AllowFiles(needs);
  if (!files.ok()) {
    console.Error(std::string(files.status().message()), hint);
    return kExitUsage;
  }
  // Made before any other thread, so that all threads inherit the blocked signals.
  const Signals signals;
  try {
    return run(*files, signals);
  } catch (const std::system_error& error) {
    console.Error(fmt::format("cannot start: {}", error.what()), hint);
    return kExitUnreachable;
  } catch (const std::bad_alloc&) {
    console.Error("there is no memory", "lower max_buckets, or raise `ulimit -v`");
    return kExitUnreachable;
  }
}

}  // namespace headgate::app
