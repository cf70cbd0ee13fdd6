// The state of a running sidecar over the admin address, and changes without a restart:
//
//   GET /v1/sidecar      {"mode":"enforce","upstream":"http://127.0.0.1:9000"}
//   PATCH /v1/sidecar    changes the members that the body has
#pragma once

#include <functional>
#include <string>

#include "headgate/app/sidecar_settings.h"
#include "headgate/http/router.h"

namespace headgate::app {

// Each function may be called on any loop.
struct SidecarControl {
  std::function<share::Mode()> mode;
  std::function<void(share::Mode)> set_mode;
  std::function<UpstreamList()> upstreams;
  // The scheme is the one that the sidecar was started with.
  std::function<void(UpstreamList)> set_upstreams;
};

// As ParseUpstreams reads it.
std::string ToString(const UpstreamList& upstreams);

void AddSidecarRoutes(SidecarControl control, http::Router& router);

}  // namespace headgate::app
