// Forward-auth over HTTP. A proxy sends a request to /auth, or to any path below it, for each
// request that it has received. The status of the answer tells the proxy whether the request
// passes.
//
//   ANY /auth...    200: it passes; otherwise the status that the mapping sets for the outcome
//
// The field Headgate-Outcome names the outcome. The fields of the limit are on every answer, empty
// if no limit applies. Answers that let a request pass have no body, and neither has any answer to
// nginx, which could otherwise not reuse its connection.
#pragma once

#include "headgate/front/auth/judge.h"
#include "headgate/http/router.h"
#include "headgate/net/event_loop.h"

namespace headgate::front::auth {

// One per loop; not thread-safe.
class AuthHandler {
 public:
  // All arguments must outlive the handler. `loop` is the loop that it runs on.
  AuthHandler(limiter::Checker& checker, const answer::LimitAnswerOptions& answer,
              const JudgeOptions& options, net::EventLoop& loop, Counters& counters)
      : answer_(checker, answer),
        judge_(checker, answer_, options, counters),
        loop_(loop),
        counters_(counters) {}
  AuthHandler(const AuthHandler&) = delete;
  AuthHandler& operator=(const AuthHandler&) = delete;

  // The router must not outlive this handler.
  void AddRoutes(http::Router& router);

 private:
  struct Conversation;

  void Handle(const http::Request& request, http::Response& response, base::Instant now);
  void Answer(const http::Request& request, http::Response& response, base::Instant now);
  void Write(http::Response& response, base::Instant now);
  void Hold(Conversation& conversation, http::Response& response);
  Conversation& ConversationOf(const http::Request& request);

  answer::LimitAnswer answer_;
  Judge judge_;
  net::EventLoop& loop_;
  Counters& counters_;
  Verdict verdict_;
};

}  // namespace headgate::front::auth
