// POST /v1/checks: up to 1,000 checks in one request. Each is decided by itself, as by /v1/check,
// in their order; checks that wait for the shared store wait together.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/answer/limit_answer.h"
#include "headgate/front/api/batch_body.h"
#include "headgate/front/api/check_json.h"
#include "headgate/http/routing/router.h"
#include "headgate/limiter/checker.h"

namespace headgate::front::api {

// One per loop; not thread-safe.
class BatchHandler {
 public:
  // `checker` belongs to the loop. It and `answer` must outlive the handler.
  BatchHandler(limiter::Checker& checker, const answer::LimitAnswer& answer)
      : checker_(checker), answer_(answer) {}
  BatchHandler(const BatchHandler&) = delete;

  void Handle(const http::Request& request, http::Response& response, base::Instant now);

 private:
  // A batch that may wait for the shared store: by check.
  struct Waiting {
    std::vector<std::string> results;
    std::vector<std::unique_ptr<limiter::Question>> questions;  // open until the result is there
  };

  // Finds all checks, and an error in any of them.
  bool Read(std::string_view body, http::Response& response);
  bool Parse(std::string_view text, size_t index, http::Response& response);
  // Appends the result of one check. Returns false if it comes later.
  bool Decide(std::string_view text, limiter::Question* question, base::Instant now,
              std::string& result);
  // The same for a check whose question is open.
  bool Continue(limiter::Question& question, base::Instant now, std::string& result);
  bool Append(const limiter::Request& check, const absl::Status& status, std::string& result);
  void HandleLater(const http::Request& request, http::Response& response, base::Instant now);

  limiter::Checker& checker_;
  const answer::LimitAnswer& answer_;
  CheckParser parser_;
  std::vector<CheckText> checks_;
  limiter::Request check_;
  limiter::Response decided_;
  http::Response problem_;
};

}  // namespace headgate::front::api
