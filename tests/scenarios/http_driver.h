// Sends requests to /v1/check, /v1/refund and /v1/reset over one connection that stays open.
#pragma once

#include "headgate/front/api/handler.h"
#include "headgate/http/router.h"
#include "headgate/http/session.h"
#include "tests/scenarios/front_driver.h"

namespace headgate::testing {

class HttpDriver final : public FrontDriver {
 public:
  explicit HttpDriver(const MakeSharedStore& make = {});

  absl::StatusOr<algorithm::Decision> Answer(const Ask& ask, base::Instant now) override;

 private:
  front::api::CheckHandler handler_;
  http::Router router_;
  const http::Options options_;
  http::Session session_;
};

}  // namespace headgate::testing
