#include "headgate/app/sidecar/process.h"

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "headgate/app/runtime/net_metrics.h"
#include "headgate/app/runtime/run_loop.h"
#include "headgate/app/settings/version.h"
#include "headgate/app/sidecar/routes.h"
#include "headgate/front/admin/figure_routes.h"
#include "headgate/front/admin/routes.h"
#include "headgate/front/mux/refusal_text.h"

namespace headgate::app {
namespace {

// How long a process that takes over waits for its store. The old process waits three times as long
// for it.
constexpr base::Duration kStoreWaitMax = std::chrono::seconds(5);
// The last part of a drain, in which requests that still wait get their refusals.
constexpr base::Duration kLastWordsMax = std::chrono::seconds(1);
// The memory of an idle HTTP/2 connection, which needs the most (idle_memory_test.cc). It is not
// counted among the buffers.
constexpr uint64_t kIdleConnectionBytes = uint64_t{10} << 10;

}  // namespace

SidecarProcess::SidecarProcess(const SidecarSettings& settings, share::SharePool& pool,
                               const FilePlan& files, const Console& console,
                               const Signals& signals)
    : ServerProcess(settings.values, files, console, signals),
      settings_(settings),
      pool_(pool),
      admission_(pool),
      session_options_(SessionOptionsOf(settings, system_clock_)),
      upstreams_(
          settings.upstream, proxy::upstream::Live::SystemsLookUp(control_), control_,
          engine_.clock(), log_, [this](const auto& addresses, const auto& tls) {
            OnLoops([addresses, tls](SidecarLoop& loop) { loop.SetUpstreams(addresses, tls); });
          }) {
  if (settings.has_rules()) {
    rules_.emplace(settings.values,
                   SidecarRulesOptions{.client_field = settings.proxy.application.client_field,
                                       .dialect = settings.proxy.application.dialect,
                                       .refusal = settings.proxy.application.refusal},
                   engine_, control_, log_);
  }
  if (!settings.fleet_pool.empty())
    fleet_.emplace(settings.fleet_pool, settings.share, engine_.clock(), log_);
  proxy::Admission& admission = fleet_ ? fleet_->admission() : admission_;
  engine_.metrics().AddCollector([this](observe::Sink& sink) { Collect(sink); });
  for (uint32_t i = 0; i < threads_; ++i) {
    loops_.push_back(std::make_unique<SidecarLoop>(
        settings, upstreams_.addresses(), session_options_, admin_http_, admission, access_,
        server_->loop(i), engine_.clock(), log_, upstream_watch_));
    loops_.back()->proxy().SetOnAddresses(
        [this, i](std::span<const proxy::ProxyLoop::DescribedAddress> addresses,
                  base::Instant now) { upstream_health_.Report(i, addresses, now); });
    AddAdminRoutes(loops_.back()->admin());
  }
}

SidecarProcess::~SidecarProcess() {
  server_->Stop();
  for (const auto& loop : loops_) loop->LeaveLoop();
  if (fleet_) fleet_->LeaveLoop();
  EndLoops();
}

int SidecarProcess::Run() {
  LogLoweredConnections(files_, settings_.values.max_connections,
                        "raise `ulimit -n`, or lower --max-connections or --upstream-connections",
                        log_);
  if (!LoadRules() || !ShareStore()) return kExitUsage;
  if (!FindPredecessor()) return kExitUnreachable;
  if (!LoadCertificates()) return kExitUsage;
  if (!settings_.file.empty()) log_.Info("settings.loaded", {{"file", settings_.file}});
  upstreams_.Begin();
  if (!ListenOnAll()) return kExitUnreachable;
  if (listeners_.has_predecessor()) listeners_.Announce();
  AwaitStore();
  server_->Start();
  listeners_.Announce();
  const auto state = [this] { return StateForSuccessor(); };
  const auto take_over = [this](const handover::SidecarState& taken) { TakeOver(taken); };
  if (!listeners_.AwaitSuccessor(control_, state, take_over)) return kExitUnreachable;
  log_.Info("sidecar.started", {{"version", kVersion}, {"threads", uint64_t{threads_}}});
  const auto reload = [this] {
    if (rules_) rules_->Reload();
    certificates_.Reload();
    upstreams_.Reload();
  };
  RunLoop(control_, signals_,
          {.tick = [this] { Tick(); },
           .reload = reload,
           .is_over = [this] { return listeners_.has_successor(); }});
  Drain();
  return kExitOk;
}

void SidecarProcess::Drain() {
  listeners_.EndHandover();
  draining_.store(true, std::memory_order_relaxed);
  const bool has_successor = listeners_.has_successor();
  if (has_successor && shared_ != nullptr) shared_->LeaveCount();
  log_.Info("sidecar.drain_began",
            {{"timeout", settings_.values.drain_timeout}, {"has_successor", has_successor}});
  if (editor_) editor_->End();  // confirmations in progress need the control loop
  const auto begun = [this, began = engine_.clock().Now()] {
    const base::Duration words = std::min(settings_.values.drain_timeout / 4, kLastWordsMax);
    const base::Instant end = began + (settings_.values.drain_timeout - words);
    OnLoops([end](SidecarLoop& loop) { loop.proxy().EndWaiting(end); });
  };
  const bool all = has_successor ? server_->LeaveToSuccessor(settings_.values.drain_timeout, begun)
                                 : server_->Drain(settings_.values.drain_timeout, begun);
  if (shared_ != nullptr) shared_->Leave(*server_);
  log_.Info("sidecar.stopped", {{"all_requests_finished", all}});
}

bool SidecarProcess::LoadRules() {
  if (!rules_) return true;
  if (!rules_->LoadFirst(console_)) return false;
  if (settings_.values.watch.empty()) return true;
  editor_.emplace(rules_->editor(), control_);
  for (const auto& loop : loops_) loop->TakeConfirmations(*editor_);
  return true;
}

bool SidecarProcess::ShareStore() {
  if (!OpenStore(settings_.store,
                 rules_ ? rules_->instance() : Instance{.name = RandomInstanceName()}))
    return false;
  if (shared_ != nullptr) {
    if (rules_) rules_->ShowIn(*shared_);
    if (fleet_) fleet_->Begin(*shared_, settings_.store->backend.instances, server_->loop(0));
  }
  if (!rules_) return true;
  for (const auto& loop : loops_) rules_->Apply(loop->proxy(), shared_.get());
  return true;
}

// The old process serves, with rules or without. A new one that has rules to follow but none in
// force would refuse all requests, so it does not take over.
bool SidecarProcess::FindPredecessor() {
  if (!listeners_.FindPredecessor()) return false;
  if (!listeners_.has_predecessor() || !rules_ || rules_->are_in_force()) return true;
  console_.Error("--handover: this process has found no rules; the old one continues to serve",
                 "see the log above; start it again when the source of the rules can be read, or "
                 "give both processes --watch-copy");
  return false;
}

void SidecarProcess::AwaitStore() {
  if (!listeners_.has_predecessor() || shared_ == nullptr) return;
  const absl::Status status = shared_->AwaitStore(kStoreWaitMax);
  if (status.ok()) return;
  log_.Warning("handover.store_not_awaited",
               {{"waited", kStoreWaitMax},
                {"reason", std::string(status.message())},
                {"effect", std::string_view("this process takes over all the same, and decides "
                                            "without the store until it answers")}});
}

bool SidecarProcess::ListenOnAll() {
  for (const ListenAddress& address : settings_.listen) {
    const auto sessions = [this, &address](uint32_t loop) {
      return loops_[loop]->sessions().Chooser(address.tls);
    };
    if (!listeners_.Listen(address, Listeners::Reveals::kNothing, sessions)) return false;
  }
  const auto admin = [this](uint32_t loop) -> net::SessionChooser {
    return loops_[loop]->AdminChooser();
  };
  return !settings_.admin ||
         listeners_.ListenForAdmin(
             {.address = *settings_.admin,
              .connections_max = static_cast<uint32_t>(files_.admin_connections_max),
              .is_default = settings_.admin_is_default},
             admin);
}

void SidecarProcess::AddAdminRoutes(http::Router& router) {
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
  front::admin::AddFigureRoutes(engine_.metrics(), rules_ ? &engine_.top_keys() : nullptr, router);
  AddSidecarRoutes(
      {.mode = [this] { return pool_.mode(); },
       .set_mode = [this](share::Mode mode) { SetMode(mode); },
       .upstreams = [this] { return upstreams_.list(); },
       .set_upstreams = [this](proxy::upstream::List to) { upstreams_.Set(std::move(to)); },
       .names = [this] { return upstreams_.names(); },
       .addresses = [this] { return upstream_health_.addresses(); }},
      router);
}

handover::SidecarState SidecarProcess::StateForSuccessor() {
  return {
      .mode = handover::LiveSetting<share::Mode>{.now = pool_.mode(), .flag = settings_.share.mode},
      .upstream = handover::LiveSetting<std::string>{.now = ToString(upstreams_.list()),
                                                     .flag = ToString(settings_.upstream.list)},
      .addresses = upstreams_.HandOver(),
      .instances = fleet_ ? fleet_->HandOverCount() : 0,
      .pool = pool_.HandOver(engine_.clock().Now())};
}

// A change that was made while the old process ran stays, unless the flag has changed, too.
void SidecarProcess::TakeOver(const handover::SidecarState& state) {
  if (state.mode && state.mode->flag == settings_.share.mode && state.mode->now != pool_.mode())
    SetMode(state.mode->now);
  if (state.upstream && state.upstream->flag == ToString(settings_.upstream.list) &&
      state.upstream->now != state.upstream->flag) {
    auto list = proxy::upstream::ParseList(state.upstream->now);
    if (list.ok() && list->SameScheme(settings_.upstream.list)) upstreams_.Set(*std::move(list));
  }
  upstreams_.TakeOver(state.addresses);
  if (fleet_) fleet_->TakeOverCount(state.instances);
  if (const absl::Status status = pool_.TakeOver(state.pool, engine_.clock().Now()); !status.ok())
    LogNoState(log_, status);
}

void SidecarProcess::SetMode(share::Mode mode) {
  pool_.SetMode(mode);
  if (fleet_) fleet_->pool().SetMode(mode);
  const bool holds = mode != share::Mode::kPassthrough;
  OnLoops([holds](SidecarLoop& loop) { loop.proxy().SetHolds(holds); });
  log_.Info("sidecar.mode_changed", {{"passthrough", mode == share::Mode::kPassthrough}});
}

void SidecarProcess::OnLoops(const std::function<void(SidecarLoop&)>& work) {
  for (uint32_t i = 0; i < threads_; ++i)
    server_->loop(i).Post([&loop = *loops_[i], work] { work(loop); });
}

void SidecarProcess::Collect(observe::Sink& sink) {
  CollectConnections(server_->counters(), sink);
  std::vector<const proxy::ProxyCounters*> proxies;
  std::vector<const http::http2::Counters*> http2;
  uint64_t misnamed = 0;
  for (const auto& loop : loops_) {
    proxies.push_back(&loop->proxy().counters());
    http2.push_back(&loop->sessions().http2_counters());
    http2.push_back(&loop->admin_http2_counters());
    misnamed += loop->sessions().misnamed();
  }
  CollectProxy(proxies, sink);
  sink.Set(observe::Metric::kProxyRequests, {"misnamed"}, misnamed);
  CollectHttp2(http2, sink);
  upstreams_.Collect(sink);
  upstream_health_.Collect(sink);
  const base::Instant now = engine_.clock().Now();
  fleet_ ? fleet_->pool().TakeSnapshot(now, snapshot_) : pool_.TakeSnapshot(now, snapshot_);
  if (fleet_) fleet_->Collect(sink);
  CollectShare(snapshot_, client_series_, sink);
  if (rules_) rules_->Collect(sink);
  if (shared_ != nullptr) shared_->Collect(sink);
  follow::CollectCertificates({&certificates_.files(), &upstreams_.files()}, sink);
}

proxy::upstream::FailureWatch::Counts SidecarProcess::CountEnds() const {
  using proxy::RelayOutcome;
  proxy::upstream::FailureWatch::Counts counts;
  for (const auto& loop : loops_) {
    const auto& outcomes = loop->proxy().counters().relays.outcomes;
    const auto of = [&](RelayOutcome outcome) {
      return outcomes[static_cast<size_t>(outcome)].value();
    };
    counts.answered += of(RelayOutcome::kAnswered);
    counts.unreachable += of(RelayOutcome::kUnreachable);
    counts.broken += of(RelayOutcome::kBroken);
    counts.too_slow += of(RelayOutcome::kTooSlow);
  }
  return counts;
}

void SidecarProcess::Tick() {
  TickParts(kIdleConnectionBytes);
  upstream_watch_.Step(CountEnds(), engine_.clock().Now());
}

}  // namespace headgate::app
