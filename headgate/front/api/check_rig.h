// The path of POST /v1/check without sockets and clocks, for tests and benchmarks: session, router,
// JSON, limiter, memory store. Not thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "headgate/base/check.h"
#include "headgate/front/api/handler.h"
#include "headgate/http/session.h"
#include "headgate/rule/builder.h"
#include "headgate/store/memory.h"

namespace headgate::front::api {

struct CheckRig {
  // Its only rule limits the key `api_key` in the domain `edge`.
  CheckRig(const algorithm::LimitSpec& limit, base::Instant now) {
    const rule::PlainRule rule{
        .domain = "edge", .key = "api_key", .limits = {*algorithm::Limit::Make(limit)}};
    HEADGATE_CHECK(limiter.OnRules(*rule::BuildRules({&rule, 1}), now).ok());
    handler.AddRoutes(router);
  }

  static std::string Post(std::string_view body) {
    return "POST /v1/check HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: rig/1\r\nAccept: */*\r\n"
           "Content-Type: application/json\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
  }

  store::MemoryStore store{{.max_buckets = 1 << 16}};
  limiter::Limiter limiter{store, nullptr};
  limiter::Checker checker{limiter};
  CheckHandler handler{checker, {}};
  http::Access access;
  http::Router router{"Headgate", access};
  http::Options options;
  http::Session session{router, options, {}};
};

}  // namespace headgate::front::api
