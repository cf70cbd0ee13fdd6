// The path of a check over HTTP without sockets and clocks, for tests and benchmarks: session,
// router, JSON, limiter, memory store. Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/front/api/handler.h"
#include "headgate/http/handler_application.h"
#include "headgate/http/http1/server_session.h"
#include "headgate/rule/builder.h"
#include "headgate/store/memory.h"

namespace headgate::front::api {

struct CheckRig {
  // Without `rules` nothing has been loaded.
  CheckRig(std::shared_ptr<const rule::RuleSet> rules, answer::LimitAnswerOptions check_options,
           base::Instant now, access::AccessOptions access_options = {},
           std::string reservation_secret = {}, const base::HashSecret& store_secret = {})
      : store({.max_buckets = 1 << 16, .secret = store_secret}),
        handler(checker, check_options, std::move(reservation_secret)),
        access(std::move(access_options)) {
    if (rules != nullptr) HEADGATE_CHECK(limiter.OnRules(std::move(rules), now).ok());
    handler.AddRoutes(router);
  }
  // The only rule limits the key `api_key` in the domain `edge`.
  CheckRig(const algorithm::LimitSpec& limit, base::Instant now)
      : CheckRig(OneRule(limit), {}, now) {}

  static std::shared_ptr<const rule::RuleSet> OneRule(const algorithm::LimitSpec& limit) {
    const rule::PlainRule rule{
        .domain = "edge", .key = "api_key", .limits = {*algorithm::Limit::Make(limit)}};
    return *rule::BuildRules({&rule, 1});
  }

  static std::string Post(std::string_view body) {
    return "POST /v1/check HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: rig/1\r\nAccept: */*\r\n"
           "Content-Type: application/json\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
  }

  store::MemoryStore store;
  limiter::Limiter limiter{store, nullptr};
  limiter::Checker checker{limiter};
  CheckHandler handler;
  access::Access access;
  http::routing::Router router{"Headgate", access};
  http::HandlerOptions options;
  http::HandlerApplication application{router, options};
  http::http1::ServerOptions server_options{.cancels_abandoned = false};
  http::http1::ServerSession session{application, server_options, {}};
};

// A request as the router gets it.
inline http::Request RequestOf(const std::string& path, const std::string& body) {
  http::Request request;
  request.method = "POST";
  request.target = path;
  request.fields = {{"Content-Type", "application/json"}};
  request.body = body;
  return request;
}

}  // namespace headgate::front::api
