// Permits of rules that limit concurrency, for callers that say themselves when a request ends:
//
//   POST /v1/acquire   takes a permit, and gives out its id    200 or 429
//   POST /v1/release   gives it back                           200
//
// A permit that is not released ends after its ttl.
#pragma once

#include "headgate/answer/limit_answer.h"
#include "headgate/front/api/check_json.h"
#include "headgate/http/routing/router.h"
#include "headgate/limiter/checker.h"

namespace headgate::front::api {

// One per loop; not thread-safe.
class PermitHandler {
 public:
  // `checker` belongs to the loop. It and `answer` must outlive the handler.
  PermitHandler(limiter::Checker& checker, answer::LimitAnswer& answer);
  PermitHandler(const PermitHandler&) = delete;

  void Acquire(const http::Request& request, http::Response& response, base::Instant now);
  void Release(const http::Request& request, http::Response& response, base::Instant now);

 private:
  struct Acquiring;

  bool Parse(const http::Request& request, http::Response& response);
  // Reads the body into `check_`. False: `response` says what is wrong with it.
  bool Begin(const http::Request& request, Acquiring& acquiring, http::Response& response,
             base::Instant now);
  void Answer(const limiter::Request& check, Acquiring& acquiring, const absl::Status& status,
              http::Response& response, base::Instant now);
  void AnswerAcquired(const limiter::Request& check, const Acquiring& acquiring,
                      http::Response& response, base::Instant now);

  limiter::Checker& checker_;
  answer::LimitAnswer& answer_;
  CheckParser parser_;
  limiter::Request check_;
  limiter::Response decided_;
  limiter::Released released_;
};

}  // namespace headgate::front::api
