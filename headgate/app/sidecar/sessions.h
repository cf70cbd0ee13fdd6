// The connections of a sidecar's clients on one loop: HTTP/1.1 and HTTP/2. The first bytes tell
// which; with TLS they must be of the protocol that ALPN has agreed on.
#pragma once

#include <cstdint>
#include <string>

#include "headgate/base/clock.h"
#include "headgate/front/mux/mux.h"
#include "headgate/http/exchange.h"
#include "headgate/http/http1/server_session.h"
#include "headgate/http/http2/flood_guard.h"
#include "headgate/http/http2/server_session.h"
#include "headgate/net/session.h"
#include "headgate/proxy/connection_application.h"

namespace headgate::app {

// Shared by all loops.
struct SidecarSessionOptions {
  http::http1::ServerOptions http1{};
  http::http2::ServerOptions http2{};
  // If not empty: with TLS, this field gets the name in the client's certificate
  // (proxy/connection_application.h).
  std::string certificate_field{};
  // For Date; null: the time of decisions.
  const base::Clock* clock = nullptr;
};

class SidecarSessions {
 public:
  // Everything must outlive this object, which must outlive its sessions.
  SidecarSessions(http::Application& application, const SidecarSessionOptions& options)
      : options_(options),
        plain_(application, "http", {}, options.clock),
        over_tls_(application, "https", options.certificate_field, options.clock) {}

  // Chooses the sessions of a listening address, with TLS or without.
  net::SessionChooser Chooser(bool tls);
  const http::http2::Counters& http2_counters() const { return http2_counters_; }
  uint64_t misnamed() const { return over_tls_.misnamed(); }

 private:
  const SidecarSessionOptions& options_;
  proxy::ConnectionApplication plain_;
  proxy::ConnectionApplication over_tls_;
  http::http2::Counters http2_counters_;
  front::mux::Counters counters_;
};

}  // namespace headgate::app
