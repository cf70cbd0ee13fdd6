#include "headgate/front/api/handler.h"

#include "headgate/front/api/check_answer.h"
#include "headgate/http/problem.h"

namespace headgate::front::api {

CheckHandler::CheckHandler(limiter::Checker& checker, const answer::LimitAnswerOptions& options,
                           std::string reservation_secret)
    : checker_(checker),
      answer_(checker, options),
      batch_(checker, answer_),
      reserve_(checker, answer_, std::move(reservation_secret)),
      permits_(checker, answer_) {}

void CheckHandler::AddRoutes(http::routing::Router& router) {
  using Request = http::Request;
  using Response = http::Response;
  router.Add({.methods = {"POST"},
              .path = "/v1/check",
              .what = "may this request pass? 200 yes, 429 no",
              .needs = access::Right::kCheck,
              .handle = [this](const Request& request, Response& response, base::Instant now) {
                Decide(limiter::Operation::kTake, 1, request, response, now);
              }});
  router.Add({.methods = {"POST"},
              .path = "/v1/checks",
              .what = "the same for up to 1,000 requests, each decided by itself",
              .needs = access::Right::kCheck,
              .handle = [this](const Request& request, Response& response, base::Instant now) {
                batch_.Handle(request, response, now);
              }});
  router.Add({.methods = {"POST"},
              .path = "/v1/peek",
              .what = "the same, consuming nothing",
              .needs = access::Right::kCheck,
              .handle = [this](const Request& request, Response& response, base::Instant now) {
                Decide(limiter::Operation::kPeek, 0, request, response, now);
              }});
  router.Add({.methods = {"POST"},
              .path = "/v1/reserve",
              .what = "take an estimated cost, to be corrected later",
              .needs = access::Right::kCheck,
              .handle = [this](const Request& request, Response& response, base::Instant now) {
                reserve_.Reserve(request, response, now);
              }});
  router.Add({.methods = {"POST"},
              .path = "/v1/settle",
              .what = "correct a reservation to its real cost",
              .needs = access::Right::kCheck,
              .handle = [this](const Request& request, Response& response, base::Instant now) {
                reserve_.Settle(request, response, now);
              }});
  router.Add({.methods = {"POST"},
              .path = "/v1/acquire",
              .what = "take a permit of a rule that limits concurrency",
              .needs = access::Right::kCheck,
              .handle = [this](const Request& request, Response& response, base::Instant now) {
                permits_.Acquire(request, response, now);
              }});
  router.Add({.methods = {"POST"},
              .path = "/v1/release",
              .what = "give the permit back",
              .needs = access::Right::kCheck,
              .handle = [this](const Request& request, Response& response, base::Instant now) {
                permits_.Release(request, response, now);
              }});
  router.Add({.methods = {"POST"},
              .path = "/v1/refund",
              .what = "give back what a check took",
              .needs = access::Right::kRefund,
              .handle = [this](const Request& request, Response& response, base::Instant now) {
                Change(limiter::Operation::kRefund, request, response, now);
              }});
  router.Add({.methods = {"POST"},
              .path = "/v1/reset",
              .what = "make the buckets full again",
              .needs = access::Right::kAdmin,
              .handle = [this](const Request& request, Response& response, base::Instant now) {
                Change(limiter::Operation::kReset, request, response, now);
              }});
}

void CheckHandler::Decide(limiter::Operation operation, uint64_t cost_default,
                          const http::Request& request, http::Response& response,
                          base::Instant now) {
  const limiter::Request* const asked = Settle(operation, request, response, now);
  if (asked == nullptr) return;
  response.status = decided_.allowed ? 200 : 429;
  response.AddField("Content-Type", "application/json");
  AppendAnswer(decided_, response.body, HintOnDomain(*asked, decided_, checker_));
  if (const auto state = answer_.StateOf(*asked, cost_default, decided_, now))
    answer_.EmitFields(*state, now, [&](std::string_view name, std::string_view value) {
      response.AddField(name, value);
    });
}

void CheckHandler::Change(limiter::Operation operation, const http::Request& request,
                          http::Response& response, base::Instant now) {
  if (Settle(operation, request, response, now) == nullptr) return;
  if (!limiter::AnyRule(decided_)) {
    return http::AnswerProblem(404,
                               "no rule applies to any of the descriptors: nothing was changed",
                               "`headgate explain --rules PATH DOMAIN k=v` says why", response);
  }
  response.AddField("Content-Type", "application/json");
  AppendAnswer(decided_, response.body);
}

const limiter::Request* CheckHandler::Settle(limiter::Operation operation,
                                             const http::Request& request, http::Response& response,
                                             base::Instant now) {
  limiter::Question* const question = checker_.may_wait() ? &answer::QuestionOf(request) : nullptr;
  const bool has_waited = question != nullptr && question->open();
  if (!has_waited && !Parse(operation, request, response)) return nullptr;
  request_.operation = operation;
  const absl::Status status = has_waited ? checker_.Continue(*question, decided_, now)
                                         : checker_.Check(request_, decided_, now, question);
  response.later = status.ok() && decided_.waiting;
  if (response.later) return nullptr;
  if (!status.ok()) answer_.AnswerError(status, 503, response);
  const bool reached = status.ok() || status.code() == absl::StatusCode::kUnavailable;
  if (reached) answer::LimitAnswer::AddMode(answer::ModeOf(decided_), response);
  if (!status.ok()) return nullptr;
  return has_waited ? &question->request() : &request_;
}

bool CheckHandler::Parse(limiter::Operation operation, const http::Request& request,
                         http::Response& response) {
  const BodyKind kind = operation == limiter::Operation::kTake     ? BodyKind::kCheck
                        : operation == limiter::Operation::kRefund ? BodyKind::kRefund
                                                                   : BodyKind::kQuestion;
  std::optional<BodyError> error = parser_.Parse(request.body, request_, kind);
  if (!error) error = Misplaced(operation, request_, parser_);
  if (error) http::AnswerProblem(400, error->detail, error->hint, response);
  return !error;
}

}  // namespace headgate::front::api
