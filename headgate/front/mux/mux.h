// Serves all protocols on one port: the first bytes of a connection choose its session
// (protocol_sniff.h). With TLS they must be of the protocol that ALPN has agreed on. A protocol
// that the address does not serve is refused in that protocol (refusal_text.h). So is a connection
// if the server has no room for it.
#pragma once

#include <functional>
#include <memory>

#include "headgate/base/counter.h"
#include "headgate/net/session.h"

namespace headgate::front::mux {

// The protocols of one address on one loop. A protocol without a factory is refused.
struct Sessions {
  using Factory = std::function<std::unique_ptr<net::Session>(const net::Peer&)>;
  Factory resp;
  Factory http1;
  Factory http2;
  net::RequestMeter* resp_meter = nullptr;  // both may be null
  net::RequestMeter* http_meter = nullptr;
};

// Sessions started on one loop. Written by the loop's thread, readable by any.
struct alignas(64) Counters {
  base::Counter resp;
  base::Counter http;
  base::Counter spoe;
};

// `counters` and the meters must outlive the chooser and its sessions.
net::SessionChooser Mux(Sessions sessions, Counters& counters);

}  // namespace headgate::front::mux
