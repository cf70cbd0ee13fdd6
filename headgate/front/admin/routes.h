// The routes about the process and its state:
//
//   GET /v1/rules   the rules and their limits, JSON   needs access to state
//   GET /openapi.json  the description of all routes of the address
//   GET /metrics    Prometheus text                    needs access to state
//   GET /healthz    200 while the process lives
//   GET /readyz     200 while it has rules and a usable store and accepts requests, else 503 with
//                   the reason
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "headgate/base/status.h"
#include "headgate/http/routing/router.h"
#include "headgate/rule/rule_set.h"

namespace headgate::front::admin {

// The sources of the answers. Each is called on the loop that handles the request.
struct AdminSources {
  // Null before the first rules. Empty: the process has no rules; then there are only the paths
  // about the process.
  std::function<std::shared_ptr<const rule::RuleSet>()> rules;
  std::function<std::string()> metrics;     // Prometheus text, version 0.0.4
  std::function<absl::Status()> readiness;  // OK, or the reason: "draining"
  // Whether requests pass whatever their limits say. Empty: never.
  std::function<bool()> passthrough{};
};

// Adds the routes. They keep `sources`. /openapi.json describes the routes that the router has when
// it is first asked.
void AddRoutes(AdminSources sources, http::routing::Router& router);

}  // namespace headgate::front::admin
