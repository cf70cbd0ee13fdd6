// Asks by POST /v1/check, /v1/refund and /v1/reset, all over one connection that is kept open.
#pragma once

#include "headgate/front/http/handler.h"
#include "headgate/net/http_router.h"
#include "headgate/net/http_session.h"
#include "tests/scenarios/front_driver.h"

namespace headgate::testing {

class HttpDriver final : public FrontDriver {
 public:
  explicit HttpDriver(Decides decides);

  absl::StatusOr<algorithm::Decision> Answer(const Ask& ask, base::Instant now) override;

 private:
  front::http::CheckHandler handler_;
  net::HttpRouter router_;
  const net::HttpOptions options_;
  net::HttpSession session_;
};

}  // namespace headgate::testing
