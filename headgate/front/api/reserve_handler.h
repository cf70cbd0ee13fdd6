// Costs that are known only afterwards, such as the tokens of a language model or the bytes of an
// answer:
//
//   POST /v1/reserve   takes the estimated cost, and gives out a reservation    200 or 429
//   POST /v1/settle    corrects what was taken to the real cost                 200
//
// A reservation that is not settled before its expiry stays taken as estimated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/answer/limit_answer.h"
#include "headgate/front/api/check_json.h"
#include "headgate/http/routing/router.h"
#include "headgate/limiter/checker.h"

namespace headgate::front::api {

// One per loop; not thread-safe.
class ReserveHandler {
 public:
  // `checker` belongs to the loop. It and `answer` must outlive the handler. An empty `secret`
  // stands for the secret of the checker's store, which a snapshot keeps.
  ReserveHandler(limiter::Checker& checker, answer::LimitAnswer& answer, std::string secret);
  ReserveHandler(const ReserveHandler&) = delete;

  void Reserve(const http::Request& request, http::Response& response, base::Instant now);
  void Settle(const http::Request& request, http::Response& response, base::Instant now);

 private:
  struct Reserving;
  struct Settling;

  std::string_view secret() const;
  // Names the store that has the buckets; 0 if instances share it.
  uint64_t Place() const;
  // Reads the body into `check_`. False: `response` says what is wrong with it.
  bool Begin(const http::Request& request, Reserving& reserving, http::Response& response,
             base::Instant now);
  void AnswerReserved(const limiter::Request& check, const Reserving& reserving,
                      const absl::Status& status, http::Response& response, base::Instant now);
  bool Open(std::string_view body, Settling& settling, base::Instant now, http::Response& response);
  // Does the next steps of a settlement. Returns false if one of them waits, or has failed, and
  // `response` says which.
  bool DoSteps(Settling& settling, base::Instant now, http::Response& response);
  void AnswerSettled(const Settling& settling, http::Response& response);
  // Returns false if the answer waits, or is an error.
  bool Ask(limiter::Operation operation, Settling& settling, base::Instant now,
           http::Response& response);

  limiter::Checker& checker_;
  answer::LimitAnswer& answer_;
  const std::string secret_;
  const std::string
      id_begin_;  // the beginning of the ids that this handler makes; unique among handlers
  uint64_t ids_given_ = 0;
  CheckParser parser_;
  limiter::Request check_;
  std::vector<rule::Descriptor> descriptors_;
  std::vector<limiter::Request::Undone> undone_;  // if `check_` is an undo
  limiter::Response decided_;
};

}  // namespace headgate::front::api
