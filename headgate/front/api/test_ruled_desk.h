// A desk with rules as text, for tests of how much comes back to each bucket of a reservation.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "headgate/base/check.h"
#include "headgate/front/api/test_reserve_desk.h"
#include "headgate/rule/read/load.h"

namespace headgate::front::api {

// A rule set with these descriptors in the domain that Body asks for.
inline std::shared_ptr<const rule::RuleSet> RulesOf(const std::string& descriptors) {
  const rule::read::RuleFile file{.name = "f.yaml",
                                  .text = "domain: edge\ndescriptors:\n" + descriptors};
  const rule::read::LoadResult loaded = rule::read::LoadRules({&file, 1});
  HEADGATE_CHECK(loaded.ok());
  return loaded.rules;
}

// The text of a rule for one key, with this limit and further lines.
inline std::string RuleOf(std::string_view key, std::string_view limit,
                          std::string_view more = "") {
  std::string rule("- key: ");
  rule.append(key).append("\n").append(more).append("  rate_limit: {").append(limit).append("}\n");
  return rule;
}

// The text of a rule that allows 100 per hour.
inline std::string HourOf(std::string_view key, std::string_view more = "") {
  return RuleOf(key, "unit: hour, requests_per_unit: 100, algorithm: fixed_window", more);
}

// The descriptors for Body, one for each key.
inline nlohmann::json Of(std::initializer_list<std::string_view> keys) {
  nlohmann::json descriptors = nlohmann::json::array();
  for (const std::string_view key : keys)
    descriptors.push_back({{"entries", {{{"key", key}, {"value", "ann"}}}}});
  return {{"descriptors", descriptors}};
}

// `D` is one of the desks.
template <typename D>
struct RuledDesk : D {
  using json = nlohmann::json;
  explicit RuledDesk(const std::string& rules) : D(RulesOf(rules)) {}

  uint64_t Left(std::string_view key) { return this->Remaining(Of({key})); }
  bool Takes(uint64_t cost, std::string_view key) {
    return this->Ask("/v1/check", Body(cost, Of({key})))["allowed"];
  }
  // The units that come back if nothing was used.
  json Returned(const std::string& reservation) {
    const json answer = this->Settle(reservation, 0);
    EXPECT_EQ(this->status, 200) << answer;
    return answer.value("returned", json());
  }
  void Now(const std::string& rules) {
    EXPECT_TRUE(this->limiter.OnRules(RulesOf(rules), this->now).ok());
  }
};

}  // namespace headgate::front::api
