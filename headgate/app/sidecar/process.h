// The running sidecar and everything that it owns.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "headgate/app/runtime/posted_editor.h"
#include "headgate/app/runtime/server_process.h"
#include "headgate/app/settings/console.h"
#include "headgate/app/sidecar/fleet.h"
#include "headgate/app/sidecar/loop.h"
#include "headgate/app/sidecar/metrics.h"
#include "headgate/app/sidecar/rules.h"
#include "headgate/app/sidecar/settings.h"
#include "headgate/front/mux/handler_sessions.h"
#include "headgate/observe/log.h"
#include "headgate/observe/metrics.h"
#include "headgate/proxy/pool_admission.h"
#include "headgate/proxy/upstream/failure_watch.h"
#include "headgate/proxy/upstream/health.h"
#include "headgate/proxy/upstream/live.h"
#include "headgate/share/share_pool.h"

namespace headgate::app {

class SidecarProcess : public ServerProcess {
 public:
  static constexpr uint32_t kAdminConnectionsMax = 64;

  // All arguments must outlive the process.
  SidecarProcess(const SidecarSettings& settings, share::SharePool& pool, const FilePlan& files,
                 const Console& console, const Signals& signals);
  ~SidecarProcess();

  // Serves until the signal to stop, or until a successor takes over. Returns the exit code.
  int Run();

 private:
  // The calls of a start. Each returns false if it fails; the error is then on the console.
  bool LoadRules();
  bool ShareStore();
  bool FindPredecessor();
  bool ListenOnAll();
  // Never fails. If there is a predecessor, waits until the store is connected, before this process
  // accepts.
  void AwaitStore();

  void AddAdminRoutes(http::Router& router);
  // Lets the requests in progress end.
  void Drain();

  // The state that a restart passes on.
  handover::SidecarState StateForSuccessor();
  void TakeOver(const handover::SidecarState& state);

  // For the routes of the admin address. Callable from any loop.
  void SetMode(share::Mode mode);
  // Runs `work` on each loop, soon.
  void OnLoops(const std::function<void(SidecarLoop&)>& work);

  // Called by one thread at a time.
  void Collect(observe::Sink& sink);
  void Tick();
  proxy::upstream::FailureWatch::Counts CountEnds() const;

  const SidecarSettings& settings_;
  std::atomic<bool> draining_{false};
  proxy::upstream::FailureWatch upstream_watch_{log_};
  proxy::upstream::Health upstream_health_{log_};
  share::SharePool& pool_;
  share::PoolSnapshot snapshot_;
  share::ClientSeries client_series_{kClientSeriesMax};
  proxy::PoolAdmission admission_;
  std::optional<SidecarFleet> fleet_;  // decides in place of pool_, if the scope is the fleet
  const SidecarSessionOptions session_options_;
  const front::mux::HandlerSessionOptions admin_http_{
      {.hosts = http::KnownHosts(settings_.values.known_host), .clock = &system_clock_},
      net::ServerOptions{}.request_timeout};
  proxy::upstream::Live upstreams_;
  std::optional<SidecarRules> rules_;  // absent: there are none
  // Confirms deletions of rules in ZooKeeper; absent if the rules come from elsewhere.
  std::optional<EditorThread> editor_;
  std::vector<std::unique_ptr<SidecarLoop>> loops_;
};

}  // namespace headgate::app
