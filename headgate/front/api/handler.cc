#include "headgate/front/api/handler.h"

#include <algorithm>

#include "headgate/base/check.h"
#include "headgate/front/api/check_answer.h"
#include "headgate/http/problem.h"

namespace headgate::front::api {

namespace {

// A client that is refused because the store is unreachable, or because there are no rules yet,
// should not retry at once.
constexpr std::string_view kUnavailableRetryAfterS = "1";

limiter::Pending* PendingOf(const http::Request& request) {
  HEADGATE_CHECK(request.suspension != nullptr);
  http::Suspension& suspension = *request.suspension;
  return &suspension.Ensure<limiter::Pending>([&suspension] { suspension.wake(); });
}

limiter::Mode ModeOf(const limiter::Response& response) {
  limiter::Mode mode = limiter::Mode::kMemory;
  for (const limiter::DescriptorAnswer& outcome : response.descriptors)
    mode = std::max(mode, outcome.mode);
  return mode;
}

}  // namespace

CheckHandler::CheckHandler(limiter::Checker& checker, const CheckOptions& options)
    : checker_(checker), options_(options) {}

void CheckHandler::AddRoutes(http::Router& router) {
  using Request = http::Request;
  using Response = http::Response;
  router.Add({.methods = {"POST"},
              .path = "/v1/check",
              .what = "may this request pass? 200 yes, 429 no",
              .handle = [this](const Request& request, Response& response, base::Instant now) {
                Decide(limiter::Operation::kTake, 1, request, response, now);
              }});
  router.Add({.methods = {"POST"},
              .path = "/v1/peek",
              .what = "the same, consuming nothing",
              .handle = [this](const Request& request, Response& response, base::Instant now) {
                Decide(limiter::Operation::kPeek, 0, request, response, now);
              }});
  router.Add({.methods = {"POST"},
              .path = "/v1/refund",
              .what = "give back what a check took",
              .needs = http::Needs::kStateAccess,
              .handle = [this](const Request& request, Response& response, base::Instant now) {
                Change(limiter::Operation::kRefund, request, response, now);
              }});
  router.Add({.methods = {"POST"},
              .path = "/v1/reset",
              .what = "reset the buckets, as if never used",
              .needs = http::Needs::kStateAccess,
              .handle = [this](const Request& request, Response& response, base::Instant now) {
                Change(limiter::Operation::kReset, request, response, now);
              }});
}

void CheckHandler::Decide(limiter::Operation operation, uint64_t cost_default,
                          const http::Request& request, http::Response& response,
                          base::Instant now) {
  if (!Parse(request, response) || !Settle(operation, request, response, now)) return;
  response.status = decided_.allowed ? 200 : 429;
  response.AddField("Content-Type", "application/json");
  AppendAnswer(decided_, response.body);
  AddLimitFields(cost_default, response, now);
}

void CheckHandler::Change(limiter::Operation operation, const http::Request& request,
                          http::Response& response, base::Instant now) {
  if (!Parse(request, response) || !Settle(operation, request, response, now)) return;
  if (!limiter::AnyRule(decided_)) {
    return http::AnswerProblem(404,
                               "no rule applies to any of the descriptors: nothing was changed",
                               "`headgate explain DOMAIN k=v` says why", response);
  }
  response.AddField("Content-Type", "application/json");
  AppendAnswer(decided_, response.body);
}

bool CheckHandler::Settle(limiter::Operation operation, const http::Request& request,
                          http::Response& response, base::Instant now) {
  request_.operation = operation;
  limiter::Pending* const pending = checker_.may_wait() ? PendingOf(request) : nullptr;
  const absl::Status status = checker_.Check(request_, decided_, now, pending);
  if (status.ok()) {
    response.later = decided_.waiting;
    if (response.later) return false;
  } else {
    AnswerError(status, response);
  }
  const bool reached = status.ok() || status.code() == absl::StatusCode::kUnavailable;
  if (const limiter::Mode mode = ModeOf(decided_); reached && mode != limiter::Mode::kMemory) {
    response.AddField("X-RateLimit-Mode", Name(mode));
  }
  return status.ok();
}

bool CheckHandler::Parse(const http::Request& request, http::Response& response) {
  const std::optional<BodyError> error = parser_.Parse(request.body, request_);
  if (error) http::AnswerProblem(400, error->detail, error->hint, response);
  return !error;
}

void CheckHandler::AnswerError(const absl::Status& status, http::Response& response) {
  const std::string message(status.message());
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return http::AnswerProblem(400, message, "", response);
    case absl::StatusCode::kFailedPrecondition:
      if (checker_.rules() != nullptr) return http::AnswerProblem(409, message, "", response);
      http::AnswerProblem(503, message,
                          "the path given by --rules has no rule file yet, or only files with "
                          "problems; the log names them",
                          response);
      return response.AddField("Retry-After", kUnavailableRetryAfterS);
    case absl::StatusCode::kUnavailable:
      http::AnswerProblem(503, message, "", response);
      return response.AddField("Retry-After", kUnavailableRetryAfterS);
    case absl::StatusCode::kResourceExhausted:
      return http::AnswerProblem(503, message, "", response);
    default:
      return http::AnswerProblem(500, message, "", response);
  }
}

void CheckHandler::AddLimitFields(uint64_t cost_default, http::Response& response,
                                  base::Instant now) {
  std::optional<wire::RateLimitState> state = Tightest(decided_);
  if (!state) return;
  if (state->denied) state->retry_after = HonestRetryAfter(cost_default, now);
  wire::EmitRateLimitFields(
      *state, options_.fields, scratch_,
      [&](std::string_view name, std::string_view value) { response.AddField(name, value); });
}

// A denied request may have consumed from the descriptors that allowed it, and one of these may now
// deny the next request. In this case a peek at the current state tells how long the client must
// wait.
std::optional<base::Duration> CheckHandler::HonestRetryAfter(uint64_t cost_default,
                                                             base::Instant now) {
  peek_descriptors_.assign(request_.descriptors.begin(), request_.descriptors.end());
  bool spent = false;
  for (size_t i = 0; i < peek_descriptors_.size(); ++i) {
    peek_descriptors_[i].cost = peek_descriptors_[i].cost.value_or(cost_default);
    const limiter::DescriptorAnswer& outcome = decided_.descriptors[i];
    spent = spent || (outcome.allowed() && outcome.has_decision() &&
                      outcome.decision.remaining < *peek_descriptors_[i].cost);
  }
  // A shared bucket may change before another peek is answered, so the decision at hand is used.
  if (!spent || checker_.may_wait() ||
      !checker_
           .Check({.domain = request_.domain,
                   .descriptors = peek_descriptors_,
                   .operation = limiter::Operation::kPeek},
                  peeked_, now)
           .ok()) {
    return RetryAfter(decided_);
  }
  return RetryAfter(peeked_);
}

}  // namespace headgate::front::api
