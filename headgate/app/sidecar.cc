#include "headgate/app/sidecar.h"

#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "headgate/app/connection_watch.h"
#include "headgate/app/engine.h"
#include "headgate/app/file_plan.h"
#include "headgate/app/followed_certificates.h"
#include "headgate/app/net_metrics.h"
#include "headgate/app/run_loop.h"
#include "headgate/app/sidecar_handover.h"
#include "headgate/app/sidecar_metrics.h"
#include "headgate/app/sidecar_plan.h"
#include "headgate/app/sidecar_routes.h"
#include "headgate/app/sidecar_rules.h"
#include "headgate/app/sidecar_sessions.h"
#include "headgate/app/sidecar_settings.h"
#include "headgate/app/signals.h"
#include "headgate/app/version.h"
#include "headgate/base/random_secret.h"
#include "headgate/front/admin/routes.h"
#include "headgate/http/http1/client_session.h"
#include "headgate/http/http2/client_session.h"
#include "headgate/http/session.h"
#include "headgate/net/server.h"
#include "headgate/proxy/pool_admission.h"
#include "headgate/share/share_pool.h"

namespace headgate::app {
namespace {

constexpr uint32_t kAdminConnectionsMax = 64;
// Servers of a store that connections are reckoned for.
constexpr uint64_t kStoreServers = 8;
constexpr base::Duration kHandoverTimeout = std::chrono::seconds(5);

const http::http2::ClientOptions kHttp2Client;

net::Stream::Options StreamOptionsOf(const SidecarSettings& settings) {
  return {.tls = settings.tls.upstream,
          .server_name = settings.tls.upstream_name,
          .connect_timeout = settings.connect_timeout};
}

// The addresses for one loop, which counts in `counters`.
std::vector<proxy::StreamConnectionOptions> AddressesOf(const UpstreamList& upstreams,
                                                        const net::Stream::Options& stream,
                                                        http::http2::Counters& counters) {
  const auto make_session = [http2 = upstreams.http2,
                             &counters]() -> std::unique_ptr<http::ClientSession> {
    if (http2) return std::make_unique<http::http2::ClientSession>(kHttp2Client, counters);
    return std::make_unique<http::http1::ClientSession>();
  };
  std::vector<proxy::StreamConnectionOptions> addresses;
  for (const net::StreamTarget& target : upstreams.targets) {
    addresses.push_back({.target = target,
                         .stream = stream,
                         .make_session = make_session,
                         .http2 = upstreams.http2});
  }
  return addresses;
}

proxy::ProxyOptions ProxyOptionsOf(const SidecarSettings& settings,
                                   http::http2::Counters& counters) {
  proxy::ProxyOptions options = settings.proxy;
  options.addresses = AddressesOf(settings.upstreams, StreamOptionsOf(settings), counters);
  return options;
}

SidecarSessionOptions SessionOptionsOf(const SidecarSettings& settings) {
  SidecarSessionOptions options;
  const std::string& client_field = settings.proxy.application.client_field;
  if (!client_field.empty()) {
    options.http1.never_nominated.push_back(client_field);
    options.http1_over_tls.never_nominated.push_back(client_field);
    options.http2.never_in_trailers.push_back(client_field);
  }
  if (settings.tls.client_from_certificate) options.certificate_field = client_field;
  return options;
}

FileNeeds FileNeedsOf(const SidecarSettings& settings) {
  const uint64_t upstream_connections =
      settings.proxy.upstreams.connections_max * settings.upstreams.targets.size();
  const uint64_t store_connections =
      settings.store ? kStoreServers * settings.engine.store_connections : 0;
  return {.threads = settings.threads,
          .addresses = settings.listen.size() + 1,
          .store_connections = upstream_connections + store_connections,
          .store_connections_min = 1,
          .connections_max = settings.connections_max,
          .admin_connections_max = settings.admin ? kAdminConnectionsMax : 0};
}

net::ServerOptions ServerOptionsOf(const SidecarSettings& settings, const FilePlan& files) {
  return {
      .threads = settings.threads,
      .connections_max = static_cast<uint32_t>(files.connections_max),
      .connections_per_address_max = static_cast<uint32_t>(settings.connections_per_address_max),
      .refusals_max = static_cast<uint32_t>(files.refusals_max)};
}

// The part of the sidecar on one loop.
struct LoopParts {
  LoopParts(const SidecarSettings& settings, const SidecarSessionOptions& session_options,
            proxy::Admission& admission, access::Access& access, net::EventLoop& loop,
            const base::DisciplinedClock& clock)
      : options(ProxyOptionsOf(settings, upstream_http2)),
        proxy(options, admission, loop, clock),
        sessions(proxy.application(), session_options),
        admin("Headgate, the admin address of a sidecar", access,
              [&loop](std::function<void()> work) { loop.Post(std::move(work)); }) {}

  http::http2::Counters upstream_http2;
  const proxy::ProxyOptions options;
  proxy::ProxyLoop proxy;
  SidecarSessions sessions;
  http::Router admin;
};

// The running sidecar and everything that it owns.
class Process {
 public:
  Process(const SidecarSettings& settings, share::SharePool& pool, const FilePlan& files,
          const Console& console, const Signals& signals)
      : settings_(settings),
        files_(files),
        console_(console),
        signals_(signals),
        log_({.level_min = settings.log_level,
              .format = settings.log_format,
              .secret = base::RandomHashSecret()},
             system_clock_),
        engine_(settings.engine, settings.threads, system_clock_, log_, spare_files_),
        pool_(pool),
        admission_(pool),
        certificates_(settings.tls.clients, control_, log_),
        session_options_(SessionOptionsOf(settings)),
        access_({.credential = settings.credential}),
        upstreams_(settings.upstreams),
        server_(ServerOptionsOf(settings, files), engine_.clock(), spare_files_) {
    if (settings.has_rules()) {
      rules_.emplace(settings.engine,
                     SidecarRulesOptions{.client_field = settings.proxy.application.client_field,
                                         .dialect = settings.proxy.application.dialect},
                     engine_, control_, log_);
    }
    engine_.metrics().AddCollector([this](observe::Sink& sink) { Collect(sink); });
    for (uint32_t i = 0; i < settings_.threads; ++i) {
      loops_.push_back(std::make_unique<LoopParts>(settings, session_options_, admission_, access_,
                                                   server_.loop(i), engine_.clock()));
      AddAdminRoutes(loops_.back()->admin);
    }
  }
  ~Process() {
    server_.Stop();
    access_.End();
    for (const auto& loop : loops_) loop->proxy.LeaveLoop();
  }

  int Run() {
    if (rules_ && (!rules_->LoadFirst(console_) || !ApplyRules())) return kExitUsage;
    if (!FindPredecessor()) return kExitUnreachable;
    if (const absl::Status status = certificates_.LoadFirst(); !status.ok()) {
      console_.Error(std::string(status.message()), "see --tls-certificate-file");
      return kExitUsage;
    }
    if (!ListenOnAll()) return kExitUnreachable;
    server_.Start();
    if (!AwaitSuccessor()) return kExitUnreachable;
    log_.Info("sidecar.started", {{"version", kVersion}, {"threads", uint64_t{settings_.threads}}});
    const auto reload = [this] {
      if (rules_) rules_->Reload();
      certificates_.Reload();
    };
    RunLoop(control_, signals_,
            {.tick = [this] { Tick(); },
             .reload = reload,
             .is_over = [this] { return has_successor_; }});
    handover_.reset();
    draining_.store(true, std::memory_order_relaxed);
    log_.Info("sidecar.drain_began",
              {{"timeout", settings_.drain_timeout}, {"has_successor", has_successor_}});
    const bool all = has_successor_ ? server_.LeaveToSuccessor(settings_.drain_timeout)
                                    : server_.Drain(settings_.drain_timeout);
    if (shared_ != nullptr) shared_->Leave(server_);
    log_.Info("sidecar.stopped", {{"all_requests_finished", all}});
    return kExitOk;
  }

 private:
  bool ApplyRules() {
    if (settings_.store) {
      auto shared = SharedStores::Make(*settings_.store, settings_.engine, rules_->instance(),
                                       engine_, server_, settings_.threads, log_);
      if (!shared.ok()) {
        console_.Error(std::string(shared.status().message()));
        return false;
      }
      shared_ = *std::move(shared);
      rules_->ShowIn(*shared_);
    }
    for (const auto& loop : loops_) rules_->Apply(loop->proxy, shared_.get());
    return true;
  }

  bool Listen(const ListenAddress& address, std::string_view announced,
              const std::function<net::SessionChooser(uint32_t loop)>& sessions,
              net::ListenOptions options) {
    options.unix_mode = address.mode;
    options.proxies = address.proxies;
    if (address.tls) options.tls = certificates_.server();
    const std::string name = fmt::format("{} {}", announced, address.endpoint.ToString());
    const auto bound = TakeOrListen(name, address.endpoint, sessions, options);
    if (!bound.ok()) {
      console_.Error(std::string(bound.status().message()), HintOnListening(address.endpoint));
      return false;
    }
    console_.out << announced << (address.tls ? " tls:" : " ") << bound->ToString() << std::endl;
    addresses_.push_back(
        {.name = name, .bound = *bound, .sockets = server_.listening_sockets().back()});
    return true;
  }

  absl::StatusOr<net::Endpoint> TakeOrListen(
      std::string_view name, const net::Endpoint& endpoint,
      const std::function<net::SessionChooser(uint32_t loop)>& sessions,
      const net::ListenOptions& options) {
    auto taken = predecessor_ ? predecessor_->Take(name) : std::nullopt;
    if (!taken) return server_.Listen(endpoint, sessions, options);
    server_.Adopt(endpoint, std::move(taken->sockets), sessions, options);
    return taken->bound;
  }

  // ---- Handover

  bool FindPredecessor() {
    if (settings_.handover.empty()) return true;
    auto found = Predecessor::Find(settings_.handover, kHandoverTimeout);
    if (found.ok()) {
      predecessor_ = *std::move(found);
      return true;
    }
    console_.Error(fmt::format("--handover: {}", std::string(found.status().message())),
                   "stop the process that has the addresses, and start this one again");
    return false;
  }

  bool AwaitSuccessor() {
    if (settings_.handover.empty()) return true;
    auto point = HandoverPoint::Open(settings_.handover, addresses_, control_,
                                     [this] { has_successor_ = true; });
    if (!point.ok()) {
      console_.Error(fmt::format("--handover: {}", std::string(point.status().message())),
                     "name a path in a directory that this user may write");
      return false;
    }
    handover_ = *std::move(point);
    if (!predecessor_) return true;
    const absl::Status status = predecessor_->SayReady();
    log_.Info("sidecar.sockets_taken",
              {{"addresses", uint64_t{addresses_.size()}},
               {"old_process", std::string_view(status.ok() ? "leaves" : "has gone before")}});
    predecessor_.reset();
    return true;
  }

  bool ListenOnAll() {
    for (const ListenAddress& address : settings_.listen) {
      const auto sessions = [this, &address](uint32_t loop) {
        return loops_[loop]->sessions.Chooser(address.tls);
      };
      if (!Listen(address, "listening on", sessions, {})) return false;
    }
    const auto admin = [this](uint32_t loop) -> net::SessionChooser {
      return [this, &router = loops_[loop]->admin](std::span<const char>, const net::Peer& peer,
                                                   net::Room room) {
        net::SessionChoice choice{.made = true};
        if (room == net::Room::kForIt)
          choice.session = std::make_unique<http::Session>(router, admin_http_, peer);
        return choice;
      };
    };
    return !settings_.admin || Listen(*settings_.admin, "admin on", admin,
                                      {.reserved_connections_max =
                                           static_cast<uint32_t>(files_.admin_connections_max)});
  }

  void AddAdminRoutes(http::Router& router) {
    front::admin::AddRoutes(
        {.rules = rules_ ? [this] { return engine_.limiter().rules(); }
                         : std::function<std::shared_ptr<const rule::RuleSet>()>(),
         .metrics = [this] { return engine_.metrics().Render(); },
         .readiness =
             [this] {
               if (draining_.load(std::memory_order_relaxed))
                 return absl::UnavailableError("draining: the sidecar is going down");
               return shared_ != nullptr ? shared_->problem() : absl::OkStatus();
             }},
        router);
    AddSidecarRoutes({.mode = [this] { return pool_.mode(); },
                      .set_mode = [this](share::Mode mode) { SetMode(mode); },
                      .upstreams = [this] { return upstreams(); },
                      .set_upstreams = [this](UpstreamList to) { SetUpstreams(std::move(to)); }},
                     router);
  }

  // ---- Changes, from any loop.

  void SetMode(share::Mode mode) {
    pool_.SetMode(mode);
    log_.Info("sidecar.mode_changed", {{"passthrough", mode == share::Mode::kPassthrough}});
  }

  UpstreamList upstreams() {
    const std::lock_guard lock(upstreams_mutex_);
    return upstreams_;
  }

  void SetUpstreams(UpstreamList to) {
    const std::lock_guard lock(upstreams_mutex_);
    upstreams_ = std::move(to);
    log_.Info("sidecar.upstream_changed", {{"upstream", std::string_view(ToString(upstreams_))}});
    for (uint32_t i = 0; i < settings_.threads; ++i) {
      server_.loop(i).Post([this, &parts = *loops_[i], list = upstreams_] {
        parts.proxy.SetAddresses(
            AddressesOf(list, StreamOptionsOf(settings_), parts.upstream_http2));
      });
    }
  }

  // Called by one thread at a time.
  void Collect(observe::Sink& sink) {
    CollectConnections(server_.counters(), sink);
    std::vector<const proxy::ProxyCounters*> proxies;
    std::vector<const http::http2::Counters*> http2;
    for (const auto& loop : loops_) {
      proxies.push_back(&loop->proxy.counters());
      http2.push_back(&loop->sessions.http2_counters());
    }
    CollectProxy(proxies, sink);
    CollectHttp2(http2, sink);
    pool_.TakeSnapshot(engine_.clock().Now(), snapshot_);
    CollectShare(snapshot_, sink);
    if (rules_) rules_->Collect(sink);
    if (shared_ != nullptr) shared_->Collect(sink);
    certificates_.Collect(sink);
  }

  void Tick() {
    engine_.Tick();
    const base::Instant now = engine_.clock().Now();
    connection_watch_.Step(server_.counters(), now);
    if (shared_ != nullptr) shared_->Tick(now);
    (void)spare_files_.Refill();
  }

  const SidecarSettings& settings_;
  const FilePlan& files_;
  const Console& console_;
  const Signals& signals_;
  net::SpareFiles spare_files_;  // opened first, so that their numbers are low
  base::SystemClock system_clock_;
  std::atomic<bool> draining_{false};
  observe::Log log_;
  ConnectionWatch connection_watch_{log_};
  Engine engine_;
  // Runs on the main thread: signals, the tick, and the rule sources.
  net::EventLoop control_{system_clock_};
  share::SharePool& pool_;
  share::PoolSnapshot snapshot_;
  proxy::PoolAdmission admission_;
  FollowedCertificates certificates_;
  const SidecarSessionOptions session_options_;
  const http::Options admin_http_{};
  access::Access access_;
  std::mutex upstreams_mutex_;
  UpstreamList upstreams_;             // guarded by upstreams_mutex_
  std::optional<SidecarRules> rules_;  // absent: there are none
  std::vector<std::unique_ptr<LoopParts>> loops_;
  std::optional<Predecessor> predecessor_;  // until this process is ready
  std::vector<HandoverPoint::Address> addresses_;
  bool has_successor_ = false;
  std::unique_ptr<HandoverPoint> handover_;
  // The loops use everything declared above.
  net::Server server_;
  // Lives on the loops, so it is destroyed before them. Null: the rules count in this process.
  std::unique_ptr<SharedStores> shared_;
};

}  // namespace

int Sidecar(const std::vector<std::string>& arguments, const Console& console) {
  HoldReload();
  const auto settings = ReadSidecarFlags(arguments, console);
  if (!settings) return kExitUsage;
  if (settings->plan)
    return SidecarPlan(settings->plan->log, settings->plan->client, settings->share, console);
  const auto pool = share::SharePool::Make(settings->share);
  if (!pool.ok()) {
    console.Error(std::string(pool.status().message()));
    return kExitUsage;
  }
  const FileNeeds needs = FileNeedsOf(*settings);
  const auto files = AllowFiles(needs);
  if (!files.ok()) {
    console.Error(std::string(files.status().message()),
                  "raise `ulimit -n`, or lower --max-connections");
    return kExitUsage;
  }
  // Made before any other thread, so that all threads inherit the blocked signals.
  const Signals signals;
  try {
    return Process(*settings, **pool, *files, console, signals).Run();
  } catch (const std::system_error& error) {
    console.Error(fmt::format("cannot start: {}", error.what()),
                  "raise `ulimit -n`, or lower --max-connections");
    return kExitUnreachable;
  }
}

}  // namespace headgate::app
