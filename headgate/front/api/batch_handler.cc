#include "headgate/front/api/batch_handler.h"

#include <fmt/format.h>

#include "headgate/base/check.h"
#include "headgate/front/api/check_answer.h"
#include "headgate/http/problem.h"

namespace headgate::front::api {
namespace {

std::string_view Of(std::string_view body, const CheckText& check) {
  return body.substr(check.begin, check.size);
}

}  // namespace

void BatchHandler::Handle(const http::Request& request, http::Response& response,
                          base::Instant now) {
  if (checker_.may_wait()) return HandleLater(request, response, now);
  if (!Read(request.body, response)) return;
  response.AddField("Content-Type", "application/json");
  response.body.append(R"({"results":[)");
  for (size_t i = 0; i < checks_.size(); ++i) {
    if (i > 0) response.body.push_back(',');
    Decide(Of(request.body, checks_[i]), nullptr, now, response.body);
  }
  response.body.append("]}\n");
}

void BatchHandler::HandleLater(const http::Request& request, http::Response& response,
                               base::Instant now) {
  HEADGATE_CHECK(request.suspension != nullptr);
  http::Suspension& suspension = *request.suspension;
  Waiting& waiting = suspension.Ensure<Waiting>();
  const bool has_begun = !waiting.questions.empty();
  if (!has_begun && !Read(request.body, response)) return;
  if (!has_begun) waiting.results.resize(checks_.size());
  bool all = true;
  for (size_t i = 0; i < waiting.results.size(); ++i) {
    std::string& result = waiting.results[i];
    if (!has_begun) {
      waiting.questions.push_back(
          std::make_unique<limiter::Question>([&suspension] { suspension.wake(); }));
      all = Decide(Of(request.body, checks_[i]), waiting.questions[i].get(), now, result) && all;
    } else if (waiting.questions[i]->open()) {
      all = Continue(*waiting.questions[i], now, result) && all;
    }
  }
  response.later = !all;
  if (!all) return;
  response.AddField("Content-Type", "application/json");
  response.body.append(R"({"results":[)");
  for (size_t i = 0; i < waiting.results.size(); ++i)
    response.body.append(i > 0 ? "," : "").append(waiting.results[i]);
  response.body.append("]}\n");
  waiting = Waiting();
}

bool BatchHandler::Read(std::string_view body, http::Response& response) {
  if (const std::optional<BodyError> error = SplitChecks(body, checks_)) {
    http::AnswerProblem(400, error->detail, error->hint, response);
    return false;
  }
  size_t descriptors = 0;
  for (size_t i = 0; i < checks_.size(); ++i) {
    if (!Parse(Of(body, checks_[i]), i, response)) return false;
    descriptors += check_.descriptors.size();
  }
  if (descriptors <= kBatchDescriptorsMax) return true;
  http::AnswerProblem(
      400, fmt::format("more than {} descriptors in all checks together", kBatchDescriptorsMax), "",
      response);
  return false;
}

bool BatchHandler::Parse(std::string_view text, size_t index, http::Response& response) {
  std::optional<BodyError> error = parser_.Parse(text, check_, BodyKind::kCheck);
  if (!error) error = Misplaced(limiter::Operation::kTake, check_, parser_);
  if (!error) return true;
  http::AnswerProblem(400, fmt::format("checks[{}]: {}", index, error->detail), error->hint,
                      response);
  return false;
}

bool BatchHandler::Decide(std::string_view text, limiter::Question* question, base::Instant now,
                          std::string& result) {
  HEADGATE_CHECK(!parser_.Parse(text, check_));
  check_.operation = limiter::Operation::kTake;
  return Append(check_, checker_.Check(check_, decided_, now, question), result);
}

bool BatchHandler::Continue(limiter::Question& question, base::Instant now, std::string& result) {
  return Append(question.request(), checker_.Continue(question, decided_, now), result);
}

bool BatchHandler::Append(const limiter::Request& check, const absl::Status& status,
                          std::string& result) {
  if (!status.ok()) {
    problem_ = http::Response();
    answer_.AnswerError(status, 503, problem_);
    fmt::format_to(std::back_inserter(result), R"({{"status":{},"problem":)", problem_.status);
    problem_.body.pop_back();  // the end of its line
    result.append(problem_.body).append("}");
    return true;
  }
  if (decided_.waiting) return false;
  fmt::format_to(std::back_inserter(result), R"({{"status":{},)", decided_.allowed ? 200 : 429);
  AppendAnswerFields(decided_, result, HintOnDomain(check, decided_, checker_));
  result.push_back('}');
  return true;
}

}  // namespace headgate::front::api
