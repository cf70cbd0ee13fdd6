// Forward-auth on one loop, for tests and fuzzers.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/base/clock.h"
#include "headgate/front/auth/handler.h"
#include "headgate/mapping/mapping_file.h"
#include "headgate/rule/read/load.h"
#include "headgate/store/memory.h"

namespace headgate::front::auth {

// 2026-09-21T14:13:20Z
inline constexpr base::Instant kRigStart = base::Instant::FromNanos(1'790'000'000'000'000'000);

// Clients are named by their API key.
inline constexpr std::string_view kByKey = R"(
trusted_proxies: [10.0.0.0/8]
original_request: x-forwarded
mappings:
- path: /free/*
- path: /open/*
  exempt: [{header: X-Team, values: [ops]}]
  refuse: [{header: X-Team, values: [red]}]
  descriptors:
  - entries: [{key: api_key, header: X-API-Key}]
    optional: true
- require_rule: true
  descriptors:
  - entries: [{key: api_key, header: X-API-Key}]
)";

// The value of Headgate-Outcome.
inline std::string OutcomeOf(const http::Response& response) {
  return std::string(response.fields.Find("Headgate-Outcome").value_or(""));
}

// Limits by rules of one line each, in the domain "default".
struct AuthRig {
  AuthRig(std::string_view mappings_text, std::vector<std::string> one_liners,
          answer::LimitAnswerOptions answer = {})
      : handler(checker, answer, options, loop, counters) {
    const rule::read::LoadResult rules =
        rule::read::LoadRules({}, {.one_liners = std::move(one_liners)});
    HEADGATE_CHECK(rules.ok());
    HEADGATE_CHECK(limiter.OnRules(rules.rules, kRigStart).ok());
    Publish(mappings_text);
    handler.AddRoutes(router);
  }

  void SetRuleFile(std::string_view text) {
    const std::vector<rule::read::RuleFile> files{{.name = "f.yaml", .text = std::string(text)}};
    const rule::read::LoadResult rules = rule::read::LoadRules(files, {});
    HEADGATE_CHECK(rules.ok());
    HEADGATE_CHECK(limiter.OnRules(rules.rules, kRigStart).ok());
  }

  void Publish(std::string_view text) {
    mapping::LoadedMappings loaded = mapping::LoadMappings(
        "auth.yaml", text, [](const std::string&) { return absl::NotFoundError("no files"); });
    HEADGATE_CHECK(loaded.set != nullptr);
    mappings.Publish(std::move(loaded.set));
  }

  http::Response Ask(std::string_view method, std::string_view target,
                     std::vector<std::pair<std::string_view, std::string_view>> fields,
                     base::Instant now = kRigStart) {
    http::Request request;
    request.method = method;
    request.target = target;
    request.fields = std::move(fields);
    request.peer = peer;
    http::Response response;
    router.Handle(request, response, now);
    return response;
  }

  net::Peer peer{.ip = *base::ParseIpAddress("10.0.0.1")};
  store::MemoryStore store{{.max_buckets = 1 << 12}};
  limiter::Limiter limiter{store, nullptr};
  limiter::Checker checker{limiter};
  base::ManualClock clock{base::WallTime::FromNanos(kRigStart.ns)};
  net::EventLoop loop{clock};
  gate::LiveMappings mappings;
  gate::Repeats repeats{{}};
  const base::HashSecret secret{};
  gate::Counters counters;
  const gate::JudgeOptions options{
      .mappings = mappings, .repeats = repeats, .secret = secret, .clock = clock};
  AuthHandler handler;
  access::Access access;
  http::routing::Router router{"test", access};
};

}  // namespace headgate::front::auth
