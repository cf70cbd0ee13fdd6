#include "headgate/app/sidecar/sidecar.h"

#include <memory>

#include "headgate/app/runtime/process.h"
#include "headgate/app/sidecar/plan.h"
#include "headgate/app/sidecar/proxy_part.h"
#include "headgate/app/sidecar/settings.h"
#include "headgate/share/share_pool.h"

namespace headgate::app {
namespace {

// Connections are reserved for this many servers of a store.
constexpr uint64_t kStoreServers = 8;

FileNeeds FileNeedsOf(const SidecarSettings& settings) {
  // A name counts as one address: how many there are shows only later.
  const uint64_t upstream_connections =
      settings.proxy.upstreams.connections_max * settings.upstream.list.targets.size();
  const uint64_t store_connections =
      settings.store ? kStoreServers * settings.values().store_connections : 0;
  return {.threads = settings.threads,
          .addresses = settings.listen.size() + 1,
          .store_connections = upstream_connections + store_connections,
          .store_connections_min = 1,
          .draining_connections = settings.upstream.list.http2 ? upstream_connections : 0,
          .connections_max = settings.values().max_connections,
          .admin_connections_max = settings.admin ? settings.values().max_admin_connections : 0};
}

}  // namespace

int Sidecar(const std::vector<std::string>& arguments, const Console& console) {
  HoldReload();
  const auto settings = ReadSidecarSettings(arguments, ProcessEnvironment(), console);
  if (!settings) return kExitUsage;
  if (settings->printed) {
    console.out << *settings->printed;
    return console.Finish(kExitOk);
  }
  if (settings->plan)
    return SidecarPlan(settings->plan->log, settings->plan->client, settings->share, console);
  const auto pool = share::SharePool::Make(settings->share);
  if (!pool.ok()) {
    console.Error(std::string(pool.status().message()));
    return kExitUsage;
  }
  return RunServer(
      FileNeedsOf(*settings), "raise `ulimit -n`, or lower --max-connections", console,
      [&](const FilePlan& files, const Signals& signals) {
        Process process({.configuration = settings->configuration,
                         .store = settings->store,
                         .has_rules = settings->has_rules(),
                         .hint_on_connections = "raise `ulimit -n`, or lower --max-connections or "
                                                "--upstream-connections",
                         .files = files,
                         .console = console,
                         .signals = signals});
        process.Add(std::make_unique<ProxyPart>(process, *settings, **pool));
        return process.Run();
      });
}

}  // namespace headgate::app
