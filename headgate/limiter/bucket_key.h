// The bucket of a request, as a key of the memory store.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "headgate/base/hash.h"
#include "headgate/rule/descriptor.h"
#include "headgate/rule/rule_set.h"

namespace headgate::limiter {

// The key for one limit of the matched rule: domain, limit, and the entries that the rule
// distinguishes.
base::Hash128 RuleBucketKey(const base::HashSecret& secret, std::string_view domain,
                            std::span<const rule::Entry> entries, const rule::Match& match,
                            uint8_t limit_index);

// The key for the permits of the matched rule.
base::Hash128 PermitsKey(const base::HashSecret& secret, std::string_view domain,
                         std::span<const rule::Entry> entries, const rule::Match& match);

// The key for a limit that the request brought: domain, all entries, and the limit's unit.
base::Hash128 OverrideBucketKey(const base::HashSecret& secret, std::string_view domain,
                                std::span<const rule::Entry> entries, rule::Unit unit);

// The key that remembers the id of a request.
base::Hash128 OnceBucketKey(const base::HashSecret& secret, std::string_view domain,
                            std::string_view id);

}  // namespace headgate::limiter
