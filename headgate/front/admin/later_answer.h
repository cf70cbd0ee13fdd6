// Lets a handler wait for an answer that comes by a callback.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "headgate/http/handler.h"
#include "headgate/http/problem.h"

namespace headgate::front::admin {

// Calls `ask` with a callback for the result, at the first call for a request. Returns nothing as
// long as there is no result: then `response.later` is set, and the handler is called again. If the
// client goes away, the result is dropped.
template <typename Result, typename Ask>
std::optional<Result> AskOnce(const http::Request& request, http::Response& response,
                              const Ask& ask) {
  struct Question {
    std::optional<Result> result;
    bool waits = false;
  };
  struct Kept {
    std::shared_ptr<Question> question;
  };
  http::Suspension* const suspension = request.suspension;
  Kept for_this_call;
  Kept& kept = suspension == nullptr ? for_this_call : suspension->Ensure<Kept>();
  if (kept.question == nullptr) {
    kept.question = std::make_shared<Question>();
    ask([question = std::weak_ptr(kept.question), suspension](Result result) {
      const std::shared_ptr<Question> asked = question.lock();
      if (asked == nullptr) return;
      asked->result.emplace(std::move(result));
      if (asked->waits) suspension->wake();
    });
  }
  if (kept.question->result) {
    std::optional<Result> result = std::move(kept.question->result);
    kept.question = nullptr;
    return result;
  }
  if (suspension == nullptr) {
    http::AnswerProblem(503, "the answer would come later, and nobody waits for it", "", response);
  } else {
    kept.question->waits = true;
    response.later = true;
  }
  return std::nullopt;
}

}  // namespace headgate::front::admin
