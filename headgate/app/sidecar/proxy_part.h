// The part of a server that passes requests on: the pool of the upstream's capacity, the upstreams,
// and the proxy on every event loop.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "headgate/app/runtime/part.h"
#include "headgate/app/runtime/process.h"
#include "headgate/app/sidecar/fleet.h"
#include "headgate/app/sidecar/loop.h"
#include "headgate/app/sidecar/proxy_settings.h"
#include "headgate/app/sidecar/rule_gates.h"
#include "headgate/proxy/metrics.h"
#include "headgate/proxy/pool_admission.h"
#include "headgate/proxy/upstream/failure_watch.h"
#include "headgate/proxy/upstream/health.h"
#include "headgate/proxy/upstream/live.h"
#include "headgate/share/share_pool.h"

namespace headgate::app {

// Adds the open files that the proxy needs.
void AddFileNeeds(const ProxySettings& settings, FileNeeds& needs);

class ProxyPart final : public Part {
 public:
  // All arguments must outlive this object.
  ProxyPart(Process& process, const ProxySettings& settings);

  bool Load() override { return !rules_ || rules_->Load(); }
  void Begin() override;
  void AddRoutes(http::routing::Router& router, uint32_t loop) override;
  bool Listen() override;
  void Reload() override;
  void Tick(base::Instant now) override;
  void OnPassthrough() override { ApplyMode(); }
  void HandOver(handover::SidecarState& state) override;
  void TakeOver(const handover::SidecarState& state) override;
  void EndWaiting(base::Instant end) override;
  void LeaveLoops() override;
  void Collect(observe::Sink& sink, PartSums& sums) override;
  uint64_t idle_connection_bytes() const override;

 private:
  // For the routes of the admin address. Callable from any loop.
  void SetMode(share::Mode mode);
  // The pool admits everybody in its own passthrough, and in that of the process.
  void ApplyMode();
  // Runs `work` on each loop, soon.
  void OnLoops(const std::function<void(SidecarLoop&)>& work);
  proxy::upstream::FailureWatch::Counts CountEnds() const;

  Process& process_;
  const ProxySettings& settings_;
  const base::DisciplinedClock& clock_;
  observe::Log& log_;
  proxy::upstream::FailureWatch upstream_watch_{log_};
  proxy::upstream::Health upstream_health_{log_};
  const std::unique_ptr<share::SharePool> pool_;
  std::mutex mode_mutex_;
  std::atomic<share::Mode> mode_;  // as set
  share::PoolSnapshot snapshot_;
  share::ClientSeries client_series_{proxy::kClientSeriesMax};
  proxy::PoolAdmission admission_;
  std::optional<SidecarFleet> fleet_;  // decides in place of pool_, if the scope is the fleet
  const SidecarSessionOptions session_options_;
  proxy::upstream::Live upstreams_;
  std::optional<RuleGates> rules_;  // absent: there are none
  std::vector<std::unique_ptr<SidecarLoop>> loops_;
};

}  // namespace headgate::app
