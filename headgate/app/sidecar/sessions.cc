#include "headgate/app/sidecar/sessions.h"

#include <memory>

namespace headgate::app {

net::SessionChooser SidecarSessions::Chooser(bool tls) {
  proxy::ConnectionApplication& application = tls ? over_tls_ : plain_;
  const auto http1 = [this, &application](const net::Peer& peer) {
    return std::make_unique<http::http1::ServerSession>(application, options_.http1, peer);
  };
  const auto http2 = [this, &application](const net::Peer& peer) {
    return std::make_unique<http::http2::ServerSession>(application, options_.http2, peer,
                                                        http2_counters_);
  };
  // Bytes of no known protocol are answered in HTTP/1.
  return front::mux::Mux({.resp = http1, .http1 = http1, .http2 = http2}, counters_);
}

}  // namespace headgate::app
