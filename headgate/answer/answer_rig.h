// Decisions for tests of answers.
#pragma once

#include <string>

#include "headgate/limiter/checker.h"

namespace headgate::answer {

inline algorithm::Limit Make(algorithm::LimitSpec spec) { return *algorithm::Limit::Make(spec); }

inline const algorithm::Limit kTenPerMinute =
    Make({.requests = 10, .period = std::chrono::minutes(1), .burst = 20});

inline rule::Rule Named(const std::string& name) {
  rule::Rule rule;
  rule.name = name;
  rule.path = "api_key";
  return rule;
}

inline limiter::DescriptorAnswer Allowed(const rule::Rule* rule, uint64_t remaining) {
  return {.rule = rule,
          .outcome = limiter::Outcome::kAllowed,
          .decision = {.allowed = true,
                       .limit = 20,
                       .remaining = remaining,
                       .reset_after = std::chrono::seconds(6)},
          .limit = &kTenPerMinute};
}

inline limiter::DescriptorAnswer Denied(const rule::Rule* rule, base::Duration retry_after) {
  const bool never = retry_after == algorithm::kNever;
  return {.rule = rule,
          .outcome = rule != nullptr && rule->shadow_mode ? limiter::Outcome::kShadowDenied
                     : never                              ? limiter::Outcome::kNeverFits
                                                          : limiter::Outcome::kDenied,
          .decision = {.allowed = false,
                       .limit = 20,
                       .remaining = 0,
                       .retry_after = retry_after,
                       .reset_after = std::chrono::minutes(2)},
          .limit = &kTenPerMinute};
}

}  // namespace headgate::answer
