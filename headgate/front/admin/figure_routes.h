// The figures of this instance, for programs that show them:
//
//   GET /v1/metrics   the metrics as JSON
//   GET /v1/top       the keys with the most requests, denials or cost of the last seconds;
//                     ?by=requests|denials|cost&domain=DOMAIN&rule=RULE&count=NUMBER
//
// Both need access to state.
#pragma once

#include "headgate/http/routing/router.h"
#include "headgate/observe/metrics.h"
#include "headgate/observe/top_keys.h"

namespace headgate::front::admin {

// Keys in one answer, unless the request says how many. Nobody gets more than there are counters.
inline constexpr size_t kTopDefault = 20;

// Both must outlive the router. `top` is null if the process has no rules; then /v1/top is left
// out.
void AddFigureRoutes(observe::Metrics& metrics, observe::TopKeys* top,
                     http::routing::Router& router);

}  // namespace headgate::front::admin
