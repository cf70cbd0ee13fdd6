// Forward-auth over HTTP. A proxy sends a request to /auth, or to any path below it, for each
// request that it has received. The status of the answer tells the proxy whether the request
// passes.
//
//   ANY /auth...    200: it passes; otherwise the status that the mapping sets for the outcome
//
// The field Headgate-Outcome names the outcome. If a limit applies, its fields are on the answer.
// If none applies, an answer that lets the request pass has these fields with empty values. Such an
// answer has no body, and no answer to nginx has one, because nginx could not reuse its connection
// otherwise. nginx passes on only 401 and 403. So if the head of its request cannot be read, the
// mappings decide the status too, instead of 431 or 400.
#pragma once

#include "headgate/gate/judge.h"
#include "headgate/http/routing/router.h"
#include "headgate/net/event_loop.h"

namespace headgate::front::auth {

// One per loop; not thread-safe.
class AuthHandler {
 public:
  // All arguments must outlive the handler. `loop` is the loop that it runs on.
  AuthHandler(limiter::Checker& checker, const answer::LimitAnswerOptions& answer,
              const gate::JudgeOptions& options, net::EventLoop& loop, gate::Counters& counters)
      : answer_(checker, answer),
        judge_(checker, answer_, options, counters),
        loop_(loop),
        counters_(counters) {}
  AuthHandler(const AuthHandler&) = delete;
  AuthHandler& operator=(const AuthHandler&) = delete;

  // The router must not outlive this handler.
  void AddRoutes(http::routing::Router& router);

 private:
  struct Conversation;

  void Handle(const http::Request& request, http::Response& response, base::Instant now);
  // Returns false if the answer is not for a trusted nginx.
  bool RefuseHead(const http::Request& head, const http::Refusal& refusal, http::Response& response,
                  base::Instant now);
  void Answer(const http::Request& request, http::Response& response, base::Instant now);
  void Write(http::Response& response, base::Instant now);
  void Hold(Conversation& conversation, http::Response& response);
  Conversation& ConversationOf(const http::Request& request);

  answer::LimitAnswer answer_;
  gate::Judge judge_;
  net::EventLoop& loop_;
  gate::Counters& counters_;
  gate::Verdict verdict_;
};

}  // namespace headgate::front::auth
