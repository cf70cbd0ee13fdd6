#include "headgate/front/admin/passthrough_route.h"

#include <utility>

#include "headgate/front/admin/edit_answers.h"

namespace headgate::front::admin {
namespace {

constexpr std::string_view kPath = "/v1/passthrough";

void AnswerState(bool on, http::Response& response) {
  response.AddField("Content-Type", "application/json");
  response.body = on ? "{\"passthrough\":true}\n" : "{\"passthrough\":false}\n";
}

}  // namespace

void AddPassthroughRoute(PassthroughSwitch passthrough, http::routing::Router& router) {
  router.Add(
      {.methods = {"GET"},
       .path = std::string(kPath),
       .what = "whether requests pass whatever their limits say",
       .needs = access::Right::kRead,
       .handle = [is_on = passthrough.is_on](const http::Request&, http::Response& response,
                                             base::Instant) { AnswerState(is_on(), response); }});
  router.Add({.methods = {"PUT", "DELETE"},
              .path = std::string(kPath),
              .what = "begins passthrough, or ends it",
              .needs = access::Right::kAdmin,
              // PUT and DELETE have no body here. A web page cannot send them without a preflight
              // request.
              .content_types = {},
              .handle = [set = std::move(passthrough.set)](
                            const http::Request& request, http::Response& response, base::Instant) {
                const bool on = request.method == "PUT";
                set(on, AuthorOf(request));
                AnswerState(on, response);
              }});
}

}  // namespace headgate::front::admin
