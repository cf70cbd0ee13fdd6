#include "headgate/app/sidecar/proxy_part.h"

#include <functional>
#include <span>
#include <string>
#include <utility>

#include "headgate/proxy/upstream/control_routes.h"

namespace headgate::app {
namespace {

// The memory of an idle HTTP/2 connection, which needs the most (idle_memory_test.cc). It is not
// counted among the buffers.
constexpr uint64_t kIdleConnectionBytes = uint64_t{10} << 10;

}  // namespace

void AddFileNeeds(const ProxySettings& settings, FileNeeds& needs) {
  // A name counts as one address: how many there are shows only later.
  needs.upstream_connections =
      settings.proxy.upstreams.connections_max * settings.upstream.list.targets.size();
  if (settings.upstream.list.http2) needs.draining_connections = needs.upstream_connections;
}

ProxyPart::ProxyPart(Process& process, const ProxySettings& settings)
    : process_(process),
      settings_(settings),
      clock_(process.engine().clock()),
      log_(process.log()),
      pool_(*share::SharePool::Make(settings.share)),
      mode_(settings.share.mode),
      admission_(*pool_),
      session_options_(SessionOptionsOf(settings, process.system_clock())),
      upstreams_(
          settings.upstream, proxy::upstream::Live::SystemsLookUp(process.control()),
          process.control(), clock_, log_, [this](const auto& addresses, const auto& tls) {
            OnLoops([addresses, tls](SidecarLoop& loop) { loop.SetUpstreams(addresses, tls); });
          }) {
  if (HasRules(process.settings())) rules_.emplace(process, settings.proxy.application);
  if (!settings.fleet_pool.empty())
    fleet_.emplace(settings.fleet_pool, settings.share, clock_, log_);
}

void ProxyPart::Begin() {
  proxy::Admission& admission = fleet_ ? fleet_->admission() : admission_;
  for (uint32_t i = 0; i < process_.loop_count(); ++i) {
    SidecarLoop& loop = *loops_.emplace_back(
        std::make_unique<SidecarLoop>(settings_, upstreams_.addresses(), session_options_,
                                      admission, process_.loop(i), clock_, log_, upstream_watch_));
    loop.proxy().SetOnAddresses(
        [this, i](std::span<const proxy::ProxyLoop::DescribedAddress> addresses,
                  base::Instant now) { upstream_health_.Report(i, addresses, now); });
    if (rules_) rules_->Apply(loop.proxy());
  }
  if (fleet_) {
    fleet_->Begin(*process_.shared(), static_cast<uint32_t>(process_.settings().store_instances),
                  process_.loop(0));
  }
  ApplyMode();
  upstreams_.Begin();
}

void ProxyPart::LeaveLoops() {
  for (const auto& loop : loops_) loop->LeaveLoop();
  if (fleet_) fleet_->LeaveLoop();
}

bool ProxyPart::Listen() {
  for (const ListenAddress& address : settings_.listen) {
    const auto sessions = [this, &address](uint32_t loop) {
      return loops_[loop]->sessions().Chooser(address.tls);
    };
    if (!process_.listeners().Listen(address, Listeners::Reveals::kNothing, sessions)) return false;
  }
  return true;
}

void ProxyPart::AddRoutes(http::routing::Router& router, uint32_t /*loop*/) {
  proxy::upstream::AddControlRoutes(
      {.mode = [this] { return pool_->mode(); },
       .set_mode = [this](share::Mode mode) { SetMode(mode); },
       .upstreams = [this] { return upstreams_.list(); },
       .set_upstreams = [this](proxy::upstream::List to) { upstreams_.Set(std::move(to)); },
       .names = [this] { return upstreams_.names(); },
       .addresses = [this] { return upstream_health_.addresses(); }},
      router);
}

void ProxyPart::Reload() {
  if (rules_) rules_->Reload();
  upstreams_.Reload();
}

void ProxyPart::EndWaiting(base::Instant end) {
  OnLoops([end](SidecarLoop& loop) { loop.proxy().EndWaiting(end); });
}

void ProxyPart::HandOver(handover::SidecarState& state) {
  state = {
      .mode = handover::LiveSetting<share::Mode>{.now = mode_.load(), .flag = settings_.share.mode},
      .upstream = handover::LiveSetting<std::string>{.now = ToString(upstreams_.list()),
                                                     .flag = ToString(settings_.upstream.list)},
      .addresses = upstreams_.HandOver(),
      .instances = fleet_ ? fleet_->HandOverCount() : 0,
      .pool = pool_->HandOver(clock_.Now())};
}

// A change that was made while the old process ran stays, unless the flag has changed, too.
void ProxyPart::TakeOver(const handover::SidecarState& state) {
  if (state.mode && state.mode->flag == settings_.share.mode && state.mode->now != mode_.load())
    SetMode(state.mode->now);
  if (state.upstream && state.upstream->flag == ToString(settings_.upstream.list) &&
      state.upstream->now != state.upstream->flag) {
    auto list = proxy::upstream::ParseList(state.upstream->now);
    if (list.ok() && list->SameScheme(settings_.upstream.list)) upstreams_.Set(*std::move(list));
  }
  upstreams_.TakeOver(state.addresses);
  if (fleet_) fleet_->TakeOverCount(state.instances);
  if (const absl::Status status = pool_->TakeOver(state.pool, clock_.Now()); !status.ok())
    LogNoState(log_, status);
}

void ProxyPart::ApplyMode() {
  const std::lock_guard lock(mode_mutex_);
  const share::Mode mode =
      process_.engine().limiter().passthrough() ? share::Mode::kPassthrough : mode_.load();
  pool_->SetMode(mode);
  if (fleet_) fleet_->pool().SetMode(mode);
  const bool holds = mode != share::Mode::kPassthrough;
  OnLoops([holds](SidecarLoop& loop) { loop.proxy().SetHolds(holds); });
}

void ProxyPart::SetMode(share::Mode mode) {
  mode_ = mode;
  ApplyMode();
  log_.Info("sidecar.mode_changed", {{"passthrough", mode == share::Mode::kPassthrough}});
}

void ProxyPart::OnLoops(const std::function<void(SidecarLoop&)>& work) {
  for (uint32_t i = 0; i < loops_.size(); ++i)
    process_.loop(i).Post([&loop = *loops_[i], work] { work(loop); });
}

void ProxyPart::Collect(observe::Sink& sink, PartSums& sums) {
  std::vector<const proxy::ProxyCounters*> proxies;
  uint64_t misnamed = 0;
  for (const auto& loop : loops_) {
    proxies.push_back(&loop->proxy().counters());
    sums.http2.push_back(&loop->sessions().http2_counters());
    misnamed += loop->sessions().misnamed();
  }
  proxy::CollectProxy(proxies, sink);
  sink.Set(observe::Metric::kProxyRequests, {"misnamed"}, misnamed);
  upstreams_.Collect(sink);
  upstream_health_.Collect(sink);
  const base::Instant now = clock_.Now();
  fleet_ ? fleet_->pool().TakeSnapshot(now, snapshot_) : pool_->TakeSnapshot(now, snapshot_);
  if (fleet_) fleet_->Collect(sink);
  proxy::CollectShare(snapshot_, client_series_, sink);
  if (rules_) rules_->Collect(sink, sums);
  sums.certificates.push_back(&upstreams_.files());
}

uint64_t ProxyPart::idle_connection_bytes() const { return kIdleConnectionBytes; }

proxy::upstream::FailureWatch::Counts ProxyPart::CountEnds() const {
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

void ProxyPart::Tick(base::Instant now) { upstream_watch_.Step(CountEnds(), now); }

}  // namespace headgate::app
