// The state of a Checker while it works out one request. Only for the sources of Checker.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "headgate/limiter/checker.h"
#include "headgate/limiter/published_rules.h"

namespace headgate::limiter {

// The request of a batch that remembers the id belongs to no descriptor.
inline constexpr uint32_t kOfOnce = UINT32_MAX;

// Whether `a` is tighter than `b`: a denial is tighter than an allowance, then the longer wait,
// then the smaller rest.
inline bool Tighter(const algorithm::Decision& a, const algorithm::Decision& b) {
  if (a.allowed != b.allowed) return !a.allowed;
  if (!a.allowed) return a.retry_after > b.retry_after;
  if (a.remaining != b.remaining) return a.remaining < b.remaining;
  return a.reset_after > b.reset_after;
}

// The cost of the request for a limit with this cost by size, if it has one.
algorithm::Cost CostOf(const Request& request, const rule::Descriptor& descriptor,
                       const std::optional<rule::SizeCost>& size);

struct Checker::Matched {
  rule::Match match;
  const rule::Rule* rule = nullptr;  // what applies after `replaces`
  bool domain_known = false;
  store::LimitHandle override_limit;
};

// Scratch space for working out one request; kept so that its memory is reused.
struct Checker::Scratch {
  // The descriptor that a request of the batch belongs to.
  struct Source {
    uint32_t descriptor;
    uint32_t limit_index;  // in its rule; those of a roll-out in shadow follow
    const algorithm::Limit* limit;
    const rule::SizeCost* size = nullptr;  // if the request costs as much as its size

    bool of_shadow_rollout() const { return limit_index >= rule::kLimitsPerRuleMax; }
  };

  std::vector<Matched> matched;  // by descriptor
  std::vector<BatchEntry> batch;
  std::vector<Source> sources;  // by position in the batch
  absl::flat_hash_map<uint64_t, store::LimitHandle> overrides;
  absl::flat_hash_map<algorithm::LimitSpec, store::LimitHandle> once_limits;
  store::LimitHandle once_limit;  // of this request
  std::vector<Settled> debtors;   // for the part of the batch in shadow: denied if a debt denies it
  std::vector<PermitEntry> permits;
  // By descriptor: its place in `permits`. Descriptors with one key share it.
  std::vector<std::optional<uint32_t>> permit_of;
  bool may_repeat = false;              // MayRepeat of the request, if `permit_of` is not empty
  std::optional<permit::Id> permit_id;  // the last one that this checker gave

  const PermitEntry* PermitOf(uint32_t descriptor) const {
    return descriptor < permit_of.size() && permit_of[descriptor] ? &permits[*permit_of[descriptor]]
                                                                  : nullptr;
  }
};

}  // namespace headgate::limiter
