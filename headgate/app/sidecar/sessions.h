// The connections of a sidecar's clients on one loop: HTTP/1.1 and HTTP/2. The first bytes tell
// which; with TLS they must be of the protocol that ALPN has agreed on.
#pragma once

#include <cstdint>
#include <string>

#include "headgate/base/clock.h"
#include "headgate/base/counter.h"
#include "headgate/front/mux/mux.h"
#include "headgate/http/exchange.h"
#include "headgate/http/http1/server_session.h"
#include "headgate/http/http2/flood_guard.h"
#include "headgate/http/http2/server_session.h"
#include "headgate/net/session.h"

namespace headgate::app {

// Long enough for SPIFFE, whose ids have at most 2048 bytes.
inline constexpr size_t kCertificateNameBytesMax = 2048;

// Shared by all loops.
struct SidecarSessionOptions {
  http::http1::ServerOptions http1{};
  http::http2::ServerOptions http2{};
  // If not empty: with TLS, this field gets the name in the client's certificate, whatever the
  // client has sent in it. If the certificate has a name that cannot be the value of a field, or
  // one of more than kCertificateNameBytesMax, its requests are refused with 403.
  std::string certificate_field{};
  // For Date; null: the time of decisions.
  const base::Clock* clock = nullptr;
};

// Passes requests on to an application, with the facts that their connection knows about them.
class ConnectionApplication final : public http::Application {
 public:
  ConnectionApplication(http::Application& next, std::string_view scheme,
                        const std::string& certificate_field, const base::Clock* clock)
      : next_(next), scheme_(scheme), certificate_field_(certificate_field), clock_(clock) {}

  std::unique_ptr<http::RequestReceiver> OnRequest(http::RequestHead&& head, const net::Peer& peer,
                                                   http::ServerExchange& exchange,
                                                   base::Instant now) override;

  // Requests refused because of the name in the client's certificate. From any thread.
  uint64_t misnamed() const { return misnamed_.value(); }

 private:
  http::Application& next_;
  const std::string_view scheme_;
  const std::string certificate_field_;  // empty: none
  const base::Clock* const clock_;
  base::Counter misnamed_;
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
  ConnectionApplication plain_;
  ConnectionApplication over_tls_;
  http::http2::Counters http2_counters_;
  front::mux::Counters counters_;
};

}  // namespace headgate::app
