// The connections of a sidecar's clients on one loop: HTTP/1.1, and HTTP/2 by prior knowledge.
#pragma once

#include "headgate/http/exchange.h"
#include "headgate/http/http1/server_session.h"
#include "headgate/http/http2/flood_guard.h"
#include "headgate/http/http2/server_session.h"
#include "headgate/net/session.h"

namespace headgate::app {

// Shared by all loops.
struct SidecarSessionOptions {
  http::http1::ServerOptions http1{};
  http::http2::ServerOptions http2{};
};

class SidecarSessions {
 public:
  // Everything must outlive this object, which must outlive its sessions.
  SidecarSessions(http::Application& application, const SidecarSessionOptions& options)
      : application_(application), options_(options) {}

  net::SessionChooser Chooser();
  const http::http2::Counters& http2_counters() const { return http2_counters_; }

 private:
  http::Application& application_;
  const SidecarSessionOptions& options_;
  http::http2::Counters http2_counters_;
};

}  // namespace headgate::app
