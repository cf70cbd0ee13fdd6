// Sends requests to /v1/check, /v1/refund and /v1/reset over one connection that stays open.
#pragma once

#include "headgate/front/api/handler.h"
#include "headgate/http/handler_application.h"
#include "headgate/http/http1/server_session.h"
#include "headgate/http/routing/router.h"
#include "tests/scenarios/front_driver.h"

namespace headgate::testing {

class HttpDriver final : public FrontDriver {
 public:
  explicit HttpDriver(const MakeSharedStore& make = {});

  absl::StatusOr<algorithm::Decision> Answer(const Ask& ask, base::Instant now) override;

 private:
  front::api::CheckHandler handler_;
  http::routing::Router router_;
  const http::HandlerOptions options_{};
  http::HandlerApplication application_{router_, options_};
  const http::http1::ServerOptions http1_options_{.cancels_abandoned = false};
  http::http1::ServerSession session_{application_, http1_options_, net::Peer{}};
};

}  // namespace headgate::testing
