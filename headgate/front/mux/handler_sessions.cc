#include "headgate/front/mux/handler_sessions.h"

#include <memory>
#include <utility>

namespace headgate::front::mux {

HandlerSessionOptions::HandlerSessionOptions(http::HandlerOptions handler_options,
                                             base::Duration request_timeout)
    : handler(std::move(handler_options)),
      // A client that closes its direction behind its request still gets the answer.
      http1{.bounds = {.body_bytes_max = handler.body_bytes_max},
            .keeps_nominated = true,
            .cancels_abandoned = false,
            .clock = handler.clock},
      // HTTP/2 counts the four pseudo fields too.
      http2{.bounds = {.fields_max = http::Bounds{}.fields_max + 4},
            .request_timeout = request_timeout,
            .for_handlers = true} {}

Sessions::Factory HandlerSessions::Http1() {
  return [this](const net::Peer& peer) {
    return std::make_unique<http::http1::ServerSession>(application_, options_.http1, peer);
  };
}

Sessions::Factory HandlerSessions::Http2() {
  return [this](const net::Peer& peer) {
    return std::make_unique<http::http2::ServerSession>(application_, options_.http2, peer,
                                                        http2_counters_);
  };
}

}  // namespace headgate::front::mux
