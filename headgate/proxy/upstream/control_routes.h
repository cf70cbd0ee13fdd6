// The state of a running sidecar over the admin address, and changes without a restart:
//
//   GET /v1/sidecar      {"mode":"enforce","upstream":"http://app:9000",
//                         "names":{"app:9000":["10.0.0.7:9000","10.0.0.8:9000"]},
//                         "addresses":[{"address":"10.0.0.7:9000","health":"well",
//                                       "requests_in_progress":3}, …]}
//   PATCH /v1/sidecar    changes the members that the body has
#pragma once

#include <functional>
#include <vector>

#include "headgate/http/routing/router.h"
#include "headgate/proxy/upstream/health.h"
#include "headgate/proxy/upstream/list.h"
#include "headgate/proxy/upstream/names.h"
#include "headgate/share/share_options.h"

namespace headgate::proxy::upstream {

// Each function may be called on any loop.
struct ProxyControl {
  std::function<share::Mode()> mode;
  std::function<void(share::Mode)> set_mode;
  std::function<List()> upstreams;
  // The list has the scheme that the sidecar was started with.
  std::function<void(List)> set_upstreams;
  // The upstreams that are names, with the addresses behind them.
  std::function<std::vector<Names::State>()> names;
  std::function<std::vector<Health::Address>()> addresses;
};

void AddControlRoutes(ProxyControl control, http::routing::Router& router);

}  // namespace headgate::proxy::upstream
