// The routes that decide:
//
//   POST /v1/check    decides and consumes              200 or 429
//   POST /v1/peek     decides without consuming         200 or 429
//   POST /v1/refund   gives back                        200; needs access to state
//   POST /v1/reset    resets to the unused state        200; needs access to state
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headgate/front/api/check_json.h"
#include "headgate/http/router.h"
#include "headgate/limiter/checker.h"
#include "headgate/wire/http_fields.h"

namespace headgate::front::api {

struct CheckOptions {
  // The fields that a response about a limit carries.
  wire::RateLimitFieldSet fields = wire::RateLimitFieldSet::All();
};

// One per loop; not thread-safe.
class CheckHandler {
 public:
  // `checker` belongs to the loop and must outlive the handler.
  CheckHandler(limiter::Checker& checker, const CheckOptions& options);
  CheckHandler(const CheckHandler&) = delete;
  CheckHandler& operator=(const CheckHandler&) = delete;

  // The router must not outlive this handler.
  void AddRoutes(http::Router& router);

 private:
  // Decides request_ into decided_. Returns false if the answer comes later or `response` already
  // holds an error.
  bool Settle(limiter::Operation operation, const http::Request& request, http::Response& response,
              base::Instant now);
  void Decide(limiter::Operation operation, uint64_t cost_default, const http::Request& request,
              http::Response& response, base::Instant now);
  void Change(limiter::Operation operation, const http::Request& request, http::Response& response,
              base::Instant now);
  bool Parse(const http::Request& request, http::Response& response);
  void AnswerError(const absl::Status& status, http::Response& response);
  void AddLimitFields(uint64_t cost_default, http::Response& response, base::Instant now);
  std::optional<base::Duration> HonestRetryAfter(uint64_t cost_default, base::Instant now);

  limiter::Checker& checker_;
  const CheckOptions options_;
  CheckParser parser_;
  limiter::Request request_;
  limiter::Response decided_;
  limiter::Response peeked_;
  std::vector<rule::Descriptor> peek_descriptors_;
  std::string scratch_;
};

}  // namespace headgate::front::api
