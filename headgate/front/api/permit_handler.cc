#include "headgate/front/api/permit_handler.h"

#include <fmt/format.h>

#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/base/json.h"
#include "headgate/front/api/check_answer.h"
#include "headgate/http/problem.h"
#include "headgate/wire/permit_id.h"

namespace headgate::front::api {
namespace {

void AppendField(std::string_view name, uint64_t value, std::string& out) {
  fmt::format_to(std::back_inserter(out), R"(,"{}":{})", name, value);
}

}  // namespace

// A request for a permit. If the client leaves while the request waits for the shared store, the
// hold gives back a permit that is granted too late.
struct PermitHandler::Acquiring {
  explicit Acquiring(std::function<void()> wake) : question(std::move(wake)) {}

  limiter::Question question;
  base::Instant begun_at{0};
  std::string id;
  limiter::PermitHold hold;
};

PermitHandler::PermitHandler(limiter::Checker& checker, answer::LimitAnswer& answer)
    : checker_(checker), answer_(answer) {}

bool PermitHandler::Parse(const http::Request& request, http::Response& response) {
  std::optional<BodyError> error = parser_.Parse(request.body, check_, BodyKind::kAcquire);
  if (!error && parser_.expires())
    error = BodyError{.detail = "only /v1/reserve takes expires_ms", .hint = "write ttl_ms"};
  if (error) http::AnswerProblem(400, error->detail, error->hint, response);
  // The id names the permit.
  check_.once = {};
  return !error;
}

void PermitHandler::Acquire(const http::Request& request, http::Response& response,
                            base::Instant now) {
  if (!checker_.may_wait()) {
    Acquiring acquiring([] {});
    if (!Begin(request, acquiring, response, now)) return;
    return Answer(check_, acquiring, checker_.Check(check_, decided_, now), response, now);
  }
  HEADGATE_CHECK(request.suspension != nullptr);
  http::Suspension& suspension = *request.suspension;
  Acquiring& acquiring = suspension.Ensure<Acquiring>([&suspension] { suspension.wake(); });
  limiter::Question& question = acquiring.question;
  const bool has_waited = question.open();
  if (!has_waited && !Begin(request, acquiring, response, now)) return;
  const absl::Status status = has_waited ? checker_.Continue(question, decided_, now)
                                         : checker_.Check(check_, decided_, now, &question);
  Answer(has_waited ? question.request() : check_, acquiring, status, response, now);
}

bool PermitHandler::Begin(const http::Request& request, Acquiring& acquiring,
                          http::Response& response, base::Instant now) {
  if (!Parse(request, response)) return false;
  acquiring.begun_at = now;
  const bool is_given = !parser_.id().empty();
  acquiring.id = is_given ? std::string(parser_.id()) : wire::MakePermitId();
  acquiring.hold = limiter::PermitHold(wire::HashOfPermitId(acquiring.id),
                                       parser_.ttl().value_or(permit::kTtlMax),
                                       is_given ? limiter::PermitHold::Owner::kPerhapsOther
                                                : limiter::PermitHold::Owner::kThisRequest);
  check_.operation = limiter::Operation::kTake;
  check_.permits = &acquiring.hold;
  return true;
}

void PermitHandler::Answer(const limiter::Request& check, Acquiring& acquiring,
                           const absl::Status& status, http::Response& response,
                           base::Instant now) {
  check_.permits = nullptr;
  response.later = status.ok() && decided_.waiting;
  if (response.later) {
    // Closes the connection if the client leaves meanwhile, so that the hold gives the permit back:
    // nobody else will learn its id.
    response.held_until = acquiring.begun_at;
    return;
  }
  if (!status.ok()) answer_.AnswerError(status, 503, response);
  const bool reached = status.ok() || status.code() == absl::StatusCode::kUnavailable;
  if (reached) answer::LimitAnswer::AddMode(answer::ModeOf(decided_), response);
  if (!status.ok()) return;
  acquiring.hold.Keep();
  AnswerAcquired(check, acquiring, response, now);
}

void PermitHandler::AnswerAcquired(const limiter::Request& check, const Acquiring& acquiring,
                                   http::Response& response, base::Instant now) {
  response.status = decided_.allowed ? 200 : 429;
  response.AddField("Content-Type", "application/json");
  std::string& body = response.body;
  body.push_back('{');
  AppendAnswerFields(decided_, body, HintOnDomain(check, decided_, checker_));
  body.append(R"(,"id":)");
  base::AppendJsonString(acquiring.id, body);
  if (decided_.concurrency) {
    const limiter::Response::Concurrency& concurrency = *decided_.concurrency;
    AppendField("in_flight", concurrency.in_flight, body);
    AppendField("limit", concurrency.max, body);
    if (decided_.allowed && concurrency.ttl > base::Duration(0)) {
      const auto ttl = std::chrono::floor<std::chrono::milliseconds>(concurrency.ttl);
      AppendField("expires_in_ms", static_cast<uint64_t>(ttl.count()), body);
    } else if (decided_.allowed) {
      body.append(R"(,"expires_in_ms":null)");
    }
  } else {
    body.append(R"(,"in_flight":null,"limit":null,"expires_in_ms":null)");
  }
  body.append("}\n");
  if (const auto state = answer_.StateOf(check, 1, decided_, now)) {
    answer_.EmitFields(*state, now, [&](std::string_view name, std::string_view value) {
      response.AddField(name, value);
    });
  }
}

void PermitHandler::Release(const http::Request& request, http::Response& response,
                            base::Instant now) {
  limiter::Question* const question = checker_.may_wait() ? &answer::QuestionOf(request) : nullptr;
  absl::Status status;
  if (question != nullptr && question->open()) {
    status = checker_.ContinueRelease(*question, released_, now);
  } else {
    if (!Parse(request, response)) return;
    if (parser_.id().empty()) {
      return http::AnswerProblem(400, "id is missing", "send the id that /v1/acquire has answered",
                                 response);
    }
    if (parser_.ttl())
      return http::AnswerProblem(400, "only /v1/acquire takes ttl_ms", "", response);
    status = checker_.Release(check_, wire::HashOfPermitId(parser_.id()), released_, now, question);
  }
  if (!status.ok()) return answer_.AnswerError(status, 503, response);
  response.later = released_.waiting;
  if (response.later) return;
  bool any = false;
  std::string permits;
  for (const limiter::Released::OfDescriptor& released : released_.descriptors) {
    any = any || released.was_held;
    permits.append(permits.empty() ? "{" : ",{").append(R"("released":)");
    base::AppendJsonBool(released.was_held, permits);
    if (released.rule != nullptr) {
      AppendField("in_flight", released.in_flight, permits);
      AppendField("limit", released.decision.limit, permits);
      permits.append(R"(,"rule":)");
      base::AppendJsonString(released.rule->label(), permits);
    } else {
      permits.append(R"(,"in_flight":null,"limit":null,"rule":null)");
    }
    permits.push_back('}');
  }
  response.AddField("Content-Type", "application/json");
  response.body.append(R"({"released":)");
  base::AppendJsonBool(any, response.body);
  response.body.append(R"(,"permits":[)").append(permits).append("]}\n");
}

}  // namespace headgate::front::api
