// Rules that limit concurrency, for the tests of every front that gives permits: `key` alone,
// `both` beside a bucket of one request, `open` (allowed if the store fails). `plain` has only a
// bucket.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string_view>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/rule/read/load.h"

namespace headgate::testing {

inline std::shared_ptr<const rule::RuleSet> PermitRules(std::string_view domain,
                                                        std::string_view key) {
  constexpr std::string_view kLimit = "algorithm: concurrency, requests: 2, ttl: 30s";
  const std::vector<rule::read::RuleFile> files{
      {.name = "f.yaml",
       .text = fmt::format("domain: {}\n"
                           "descriptors:\n"
                           "- key: {}\n"
                           "  rate_limit: {{{}}}\n"
                           "- key: both\n"
                           "  rate_limits:\n"
                           "  - {{{}}}\n"
                           "  - {{period: 1h, requests_per_unit: 1}}\n"
                           "- key: open\n"
                           "  rate_limit: {{{}, on_store_failure: allow}}\n"
                           "- key: plain\n"
                           "  rate_limit: {{period: 1h, requests_per_unit: 5}}\n",
                           domain, key, kLimit, kLimit, kLimit)}};
  const rule::read::LoadResult loaded = rule::read::LoadRules(files);
  HEADGATE_CHECK(loaded.ok());
  return loaded.rules;
}

}  // namespace headgate::testing
