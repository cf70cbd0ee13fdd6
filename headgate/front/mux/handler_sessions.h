// The sessions of HTTP/1 and HTTP/2 for a handler on one loop.
#pragma once

#include "headgate/front/mux/mux.h"
#include "headgate/http/handler_application.h"
#include "headgate/http/http1/server_session.h"
#include "headgate/http/http2/server_session.h"

namespace headgate::front::mux {

struct HandlerSessionOptions {
  // `request_timeout`: for a stream of HTTP/2, from its head to its answer, unless the answer is
  // held back on purpose. For HTTP/1, the connection has this timeout.
  HandlerSessionOptions(http::HandlerOptions handler, base::Duration request_timeout);

  const http::HandlerOptions handler;
  const http::http1::ServerOptions http1;
  const http::http2::ServerOptions http2;
};

// Must outlive its sessions.
class HandlerSessions {
 public:
  // All references must outlive this object.
  HandlerSessions(http::Handler& handler, const HandlerSessionOptions& options,
                  http::http2::Counters& http2_counters)
      : application_(handler, options.handler),
        options_(options),
        http2_counters_(http2_counters) {}
  HandlerSessions(const HandlerSessions&) = delete;

  Sessions::Factory Http1();
  Sessions::Factory Http2();

 private:
  http::HandlerApplication application_;
  const HandlerSessionOptions& options_;
  http::http2::Counters& http2_counters_;
};

}  // namespace headgate::front::mux
