// The settings of `headgate sidecar`, read from its flags.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headgate/app/settings/configuration.h"
#include "headgate/app/settings/console.h"
#include "headgate/app/settings/listen_address.h"
#include "headgate/app/settings/settings.h"
#include "headgate/app/settings/store_settings.h"
#include "headgate/app/sidecar/tls.h"
#include "headgate/app/sidecar/upstream_list.h"
#include "headgate/observe/log_line.h"
#include "headgate/proxy/proxy_loop.h"
#include "headgate/replay/access_log.h"
#include "headgate/share/share_options.h"

namespace headgate::app {

// An access log that is replayed in place of serving.
struct PlanSettings {
  std::string log;
  replay::ClientPlace client{};
};

inline bool HasRules(const Settings& engine) {
  return !engine.rules.empty() || !engine.rule.empty() || !engine.watch.empty();
}

struct SidecarSettings {
  std::optional<std::string> printed{};  // for --print-config, in place of serving
  std::optional<PlanSettings> plan{};    // if present, only `share` has a meaning
  std::vector<ListenAddress> listen{};
  std::optional<ListenAddress> admin{};  // absent: none
  std::string credential{};
  std::vector<std::string> known_hosts{};
  UpstreamList upstreams{};
  base::Duration upstream_resolve{0};  // between two lookups of a name
  base::Duration connect_timeout{0};
  SidecarTls tls{};
  share::ShareOptions share{};
  std::string fleet_pool{};     // the pool that the fleet shares; empty: this replica has its own
  proxy::ProxyOptions proxy{};  // without addresses
  // For rules: their sources, the mapping file (`auth`), and the memory of the engine.
  Settings engine{};
  // That the rules, and a fleet's pool, count in; absent: in this process.
  std::optional<StoreSettings> store{};
  base::Duration drain_timeout{0};
  // Whether requests whose clients have closed before the answer begins are cancelled.
  bool cancels_abandoned = true;
  std::string handover{};  // the Unix socket for a successor; empty: none
  uint64_t connections_max = 0;
  uint64_t connections_per_address_max = 0;
  uint32_t threads = 1;
  observe::Level log_level = observe::Level::kInfo;
  observe::LogFormat log_format = observe::LogFormat::kText;

  bool has_rules() const { return HasRules(engine); }
};

// Reads the flags, the settings file and the environment. Nothing if a value is wrong; an error
// with a hint is then on the console.
std::optional<SidecarSettings> ReadSidecarFlags(const std::vector<std::string>& arguments,
                                                const Environment& environment,
                                                const Console& console);

}  // namespace headgate::app
