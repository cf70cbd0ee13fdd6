// The switch of passthrough: requests are decided and counted as always, and none is refused.
//
//   GET    /v1/passthrough   {"passthrough":false}     needs access to state
//   PUT    /v1/passthrough   begins it                 needs the right admin
//   DELETE /v1/passthrough   ends it                   needs the right admin
#pragma once

#include <functional>

#include "headgate/http/routing/router.h"
#include "headgate/rule/editor.h"

namespace headgate::front::admin {

// Each is called on the loop that handles the request.
struct PassthroughSwitch {
  std::function<bool()> is_on;
  std::function<void(bool on, const rule::Author& author)> set;
};

void AddPassthroughRoute(PassthroughSwitch passthrough, http::routing::Router& router);

}  // namespace headgate::front::admin
