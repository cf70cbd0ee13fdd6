// The routes that decide:
//
//   POST /v1/check    decides and consumes              200 or 429
//   POST /v1/checks   the same for up to 1,000        200
//   POST /v1/reserve, /v1/settle: see reserve_handler.h
//   POST /v1/acquire, /v1/release: see permit_handler.h
//   POST /v1/peek     decides without consuming         200 or 429
//   POST /v1/refund   gives back                        200; needs access to state
//   POST /v1/reset    resets to the unused state        200; needs access to state
#pragma once

#include "headgate/answer/limit_answer.h"
#include "headgate/front/api/batch_handler.h"
#include "headgate/front/api/check_json.h"
#include "headgate/front/api/permit_handler.h"
#include "headgate/front/api/reserve_handler.h"
#include "headgate/http/routing/router.h"
#include "headgate/limiter/checker.h"

namespace headgate::front::api {

// One per loop; not thread-safe.
class CheckHandler {
 public:
  // `checker` belongs to the loop and must outlive the handler.
  // `reservation_secret`: see ReserveHandler.
  CheckHandler(limiter::Checker& checker, const answer::LimitAnswerOptions& options,
               std::string reservation_secret = {});
  CheckHandler(const CheckHandler&) = delete;
  CheckHandler& operator=(const CheckHandler&) = delete;

  // The router must not outlive this handler.
  void AddRoutes(http::routing::Router& router);

 private:
  // Decides the request in the body into decided_, and returns it. Null if the answer comes later,
  // or `response` already holds an error.
  const limiter::Request* Settle(limiter::Operation operation, const http::Request& request,
                                 http::Response& response, base::Instant now);
  void Decide(limiter::Operation operation, uint64_t cost_default, const http::Request& request,
              http::Response& response, base::Instant now);
  void Change(limiter::Operation operation, const http::Request& request, http::Response& response,
              base::Instant now);
  bool Parse(limiter::Operation operation, const http::Request& request, http::Response& response);

  limiter::Checker& checker_;
  answer::LimitAnswer answer_;
  BatchHandler batch_;
  ReserveHandler reserve_;
  PermitHandler permits_;
  CheckParser parser_;
  limiter::Request request_;
  limiter::Response decided_;
};

}  // namespace headgate::front::api
