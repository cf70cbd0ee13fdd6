#include "headgate/front/auth/handler.h"

#include <fmt/format.h>

#include <optional>

#include "headgate/base/check.h"
#include "headgate/front/auth/original_request.h"
#include "headgate/http/problem.h"

namespace headgate::front::auth {

// The state of a connection whose request has to wait.
struct AuthHandler::Conversation {
  Conversation(net::EventLoop& loop, http::Suspension& suspension, gate::Counters& counters_of_loop)
      : asked([&suspension] { suspension.wake(); }),
        timer(loop, [&suspension] { suspension.wake(); }),
        counters(counters_of_loop) {}
  ~Conversation() { Release(); }

  void Release() {
    if (held) counters.held_ended.Add();
    held.reset();
  }

  gate::Asked asked;
  std::optional<http::Response> held;  // the answer that waits for its time
  base::BootTime due{0};
  base::Instant held_until{0};  // `due` on the clock of requests
  net::Timer timer;
  gate::Counters& counters;
};

void AuthHandler::AddRoutes(http::routing::Router& router) {
  const auto handle = [this](const http::Request& request, http::Response& response,
                             base::Instant now) { Handle(request, response, now); };
  const auto refuse_head = [this](const http::Request& head, const http::Refusal& refusal,
                                  http::Response& response, base::Instant now) {
    return RefuseHead(head, refusal, response, now);
  };
  router.Add({.methods = {},
              .path = std::string(kPath),
              .what = "may the request that a proxy describes pass?",
              .any_host = true,
              .handle = handle,
              .answer_refused_head = refuse_head});
  router.Add({.methods = {},
              .path = std::string(kPath) + "/",
              .match = http::routing::Route::Match::kPrefix,
              .what = "the same",
              .any_host = true,
              .handle = handle,
              .answer_refused_head = refuse_head});
}

AuthHandler::Conversation& AuthHandler::ConversationOf(const http::Request& request) {
  HEADGATE_CHECK(request.suspension != nullptr);
  return request.suspension->Ensure<Conversation>(loop_, *request.suspension, counters_);
}

void AuthHandler::Handle(const http::Request& request, http::Response& response,
                         base::Instant now) {
  auto* const conversation =
      request.suspension == nullptr ? nullptr : request.suspension->Find<Conversation>();
  if (conversation != nullptr && conversation->held) {
    if (loop_.Now() < conversation->due) return Hold(*conversation, response);
    response = std::move(*conversation->held);
    conversation->Release();
    return;
  }
  if (conversation != nullptr && conversation->asked.question.open()) {
    response.later = !judge_.Continue(conversation->asked, now, verdict_);
    if (response.later) return;
    return Answer(request, response, now);
  }
  const mapping::MappingSet* const set = judge_.mappings();
  mapping::DescribedRequest head;
  if (!ReadOriginalRequest(request,
                           set == nullptr ? mapping::OriginalRequest::kNone : set->original_request,
                           head)) {
    judge_.RefuseHead(head, "a header that describes the request comes twice", verdict_);
    return Answer(request, response, now);
  }
  const auto make_asked = [&]() -> gate::Asked& { return ConversationOf(request).asked; };
  response.later = !judge_.Decide(head, make_asked, now, verdict_);
  if (!response.later) Answer(request, response, now);
}

bool AuthHandler::RefuseHead(const http::Request& head, const http::Refusal& refusal,
                             http::Response& response, base::Instant now) {
  const mapping::MappingSet* const set = judge_.mappings();
  if (set == nullptr || set->original_request != mapping::OriginalRequest::kXOriginal) return false;
  mapping::DescribedRequest described;
  ReadOriginalRequest(head, set->original_request, described);
  if (!set->Trusts(described)) return false;
  judge_.RefuseHead(described, refusal.detail, verdict_);
  response.status = verdict_.status;
  Write(response, now);
  return true;
}

void AuthHandler::Answer(const http::Request& request, http::Response& response,
                         base::Instant now) {
  Write(response, now);
  const bool wants_body = judge_.mappings() != nullptr && judge_.mappings()->original_request !=
                                                              mapping::OriginalRequest::kXOriginal;
  std::string content_type;
  if (wants_body && gate::WriteRefusal(verdict_, content_type, response.body)) {
    response.AddField("Content-Type", content_type);
  } else if (wants_body && !gate::Passes(verdict_.outcome)) {
    http::AnswerProblem(verdict_.status, gate::DescribeRefusal(verdict_.outcome), verdict_.detail,
                        response);
  }
  response.status = verdict_.status;
  if (verdict_.wait <= base::Duration(0)) return;
  Conversation& conversation = ConversationOf(request);
  conversation.due = loop_.Now() + verdict_.wait;
  conversation.held_until = now + verdict_.wait;
  conversation.held = std::move(response);
  counters_.held_begun.Add();
  response = {};
  Hold(conversation, response);
}

void AuthHandler::Hold(Conversation& conversation, http::Response& response) {
  conversation.timer.Set(conversation.due);
  response.later = true;
  response.held_until = conversation.held_until;
}

void AuthHandler::Write(http::Response& response, base::Instant now) {
  response.AddField("Headgate-Outcome", gate::Name(verdict_.outcome));
  response.AddField("Cache-Control", "no-store");
  if (const std::string challenge = gate::ChallengeOf(verdict_); !challenge.empty())
    response.AddField("WWW-Authenticate", challenge);
  answer::LimitAnswer::AddMode(verdict_.mode, response);
  gate::EmitFields(verdict_, answer_, now, [&](std::string_view name, std::string_view value) {
    response.AddField(name, value);
  });
}

}  // namespace headgate::front::auth
