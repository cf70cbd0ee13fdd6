// The settings of the proxy, checked and combined, for `headgate sidecar` and for the addresses of
// listen_proxy.
#pragma once

#include <string>
#include <vector>

#include "headgate/app/settings/configuration.h"
#include "headgate/app/settings/listen_address.h"
#include "headgate/base/time.h"
#include "headgate/proxy/proxy_loop.h"
#include "headgate/proxy/upstream/live.h"
#include "headgate/share/share_options.h"

namespace headgate::app {

inline bool HasRules(const Settings& values) {
  return !values.rules.empty() || !values.rule.empty() || !values.watch.empty();
}

struct ProxySettings {
  std::vector<ListenAddress> listen{};
  proxy::upstream::LiveOptions upstream{};
  base::Duration connect_timeout{0};  // to the upstream
  share::ShareOptions share{};
  std::string fleet_pool{};     // the pool that the fleet shares; empty: this replica has its own
  proxy::ProxyOptions proxy{};  // without addresses
  bool cancels_abandoned = false;
  bool client_from_certificate = false;
};

// All problems go to the configuration; if there are any, the result must not be used.
ProxySettings ReadProxySettings(Configuration& configuration);

}  // namespace headgate::app
