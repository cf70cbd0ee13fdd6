// A server that reserves and settles, without sockets and clocks, for tests: with buckets of its
// own, and with those of a store that answers later.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "headgate/base/hash_rig.h"
#include "headgate/front/api/check_rig.h"
#include "headgate/front/api/shared_check_rig.h"

namespace headgate::front::api {

inline constexpr base::Instant kStart = base::Instant::FromNanos(1'790'000'000'000'000'000);

inline std::shared_ptr<const rule::RuleSet> TokensPerHour(uint64_t requests) {
  return CheckRig::OneRule({.algorithm = algorithm::Algorithm::kFixedWindow,
                            .requests = requests,
                            .period = std::chrono::hours(1)});
}

inline nlohmann::json Body(uint64_t cost, const nlohmann::json& more = nlohmann::json::object()) {
  nlohmann::json body = {
      {"domain", "edge"},
      {"cost", cost},
      {"descriptors", {{{"entries", {{{"key", "api_key"}, {"value", "ann"}}}}}}}};
  body.update(more);
  return body;
}

// The same server with a store that answers at once, and with one that answers later.
struct Desk {
  using json = nlohmann::json;

  virtual ~Desk() = default;
  virtual http::Response Post(const std::string& path, const std::string& body) = 0;

  int status = 0;
  json Ask(const std::string& path, const json& body) {
    const http::Response response = Post(path, body.dump());
    status = response.status;
    return json::parse(response.body);
  }
  uint64_t Remaining(const json& more = json::object()) {
    return Ask("/v1/peek", Body(0, more))["decisions"][0]["remaining"];
  }
  std::string Reserve(uint64_t cost, const json& more = json::object()) {
    const json answer = Ask("/v1/reserve", Body(cost, more));
    EXPECT_EQ(status, 200) << answer;
    return answer.value("reservation", "");
  }
  json Settle(const std::string& reservation, uint64_t cost) {
    return Ask("/v1/settle", {{"reservation", reservation}, {"cost", cost}});
  }

  base::Instant now = kStart;
};

struct MemoryDesk : Desk {
  explicit MemoryDesk(uint64_t requests = 1000) : MemoryDesk(TokensPerHour(requests)) {}
  explicit MemoryDesk(std::shared_ptr<const rule::RuleSet> rules, std::string secret = {},
                      uint64_t store_seed = 1)
      : rig(std::move(rules), {}, kStart, {}, std::move(secret), base::SecretFromSeed(store_seed)) {
  }
  http::Response Post(const std::string& path, const std::string& body) override {
    http::Response response;
    rig.router.Handle(RequestOf(path, body), response, now);
    return response;
  }
  CheckRig rig;
  limiter::Limiter& limiter = rig.limiter;
};

struct SharedDesk : Desk {
  explicit SharedDesk(uint64_t requests = 1000) : SharedDesk(TokensPerHour(requests)) {}
  explicit SharedDesk(std::shared_ptr<const rule::RuleSet> rules, std::string secret = {})
      : rig(std::move(rules), now, std::move(secret)) {}
  http::Response Post(const std::string& path, const std::string& body) override {
    return rig.AnswerTo(path, body);
  }
  SharedCheckRig rig;
  limiter::Limiter& limiter = rig.limiter;
  testing::ManualSharedStore& shared = rig.shared;
};

}  // namespace headgate::front::api
