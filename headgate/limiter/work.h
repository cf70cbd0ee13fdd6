// The state of one request while a Checker works it out, or while it waits for the store. Only for
// the sources of Checker and Question.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "headgate/base/strided.h"
#include "headgate/limiter/checker.h"
#include "headgate/limiter/published_rules.h"

namespace headgate::limiter {

// The request of a batch that remembers the id belongs to no descriptor.
inline constexpr uint32_t kOfOnce = UINT32_MAX;

// The limits of one kind that a checker keeps at hand, besides those of the rules.
inline constexpr size_t kOverridesCachedMax = 1024;

// Whether `a` is tighter than `b`: a denial is tighter than an allowance, then the longer wait,
// then a block, then the smaller rest.
inline bool Tighter(const algorithm::Decision& a, const algorithm::Decision& b) {
  if (a.allowed != b.allowed) return !a.allowed;
  if (!a.allowed) return a.retry_after > b.retry_after;
  if (a.blocked_for != b.blocked_for) return a.blocked_for > b.blocked_for;
  if (a.remaining != b.remaining) return a.remaining < b.remaining;
  return a.reset_after > b.reset_after;
}

// The cost of the request for a limit with this cost by size, if it has one.
algorithm::Cost CostOf(const Request& request, const rule::Descriptor& descriptor,
                       const std::optional<rule::SizeCost>& size);

// How many bits of an id's window note what the first request with it did.
size_t NoteBitsOf(const Request& request);

// The step whose answers are awaited.
enum class Awaits : uint8_t {
  kNothing,  // the request has just begun
  kPermits,
  kQuotas,
  kRefundId,
  kBuckets,
  kQuotasReturned,
  kShadows,
  kAcquired,
  kCostsReturned,
};

// The rule of a descriptor.
struct Matched {
  rule::Match match;
  const rule::Rule* rule = nullptr;  // what applies after `replaces`
  bool domain_known = false;
  store::LimitHandle override_limit;
};

// Its memory is reused.
struct Work {
  // The descriptor that a request of the batch belongs to.
  struct Source {
    uint32_t descriptor = 0;
    uint32_t limit_index = 0;  // in its rule; those of a roll-out in shadow follow
    const algorithm::Limit* limit = nullptr;
    const rule::SizeCost* size = nullptr;  // if the request costs as much as its size

    bool of_shadow_rollout() const { return limit_index >= rule::kLimitsPerRuleMax; }
  };

  Awaits awaits = Awaits::kNothing;
  bool has_waited = false;
  base::Strided<Settled> asked{};  // the place of the answers

  std::vector<Matched> matched;  // by descriptor
  // Features of the matched rules. A request pays only for those that a rule has.
  bool any_quota = false;
  bool any_shadow = false;  // also a roll-out in shadow
  bool any_size = false;    // of `sources`

  // The requests to buckets: quotas up to `group`, then the id and the other rules up to
  // `enforced`, then those in shadow.
  std::vector<BatchEntry> batch;
  std::vector<Source> sources;  // by position in the batch
  size_t group = 0;
  size_t enforced = 0;
  bool joined = false;  // the group takes from all of its buckets or from none
  bool quotas_deny = false;
  std::vector<store::LimitHandle> given;  // limits that the request has brought
  // The requests that give costs back, and their places in the batch.
  std::vector<BatchEntry> undos;
  std::vector<size_t> undo_places;

  // The answer about its id.
  store::LimitHandle once_limit;
  bool repeated = false;
  bool remembered = false;
  base::Instant first_passed_at{0};

  std::vector<PermitEntry> permits;
  // By descriptor: its place in `permits`. Descriptors with one key share it.
  std::vector<std::optional<uint32_t>> permit_of;
  bool may_repeat = false;  // MayRepeat of the request, if `permit_of` is not empty
  // The permits that are acquired once the buckets allow, and their places in `permits`.
  std::vector<PermitEntry> acquired;
  std::vector<size_t> acquired_places;

  bool has_quotas() const { return group > 0; }
  // The id, if there is one, and the rules that are neither quotas nor in shadow.
  std::span<BatchEntry> members() { return std::span(batch).subspan(group, enforced - group); }
  std::span<BatchEntry> shadows() { return std::span(batch).subspan(enforced); }
  const PermitEntry* PermitOf(uint32_t descriptor) const {
    return descriptor < permit_of.size() && permit_of[descriptor] ? &permits[*permit_of[descriptor]]
                                                                  : nullptr;
  }
};

// The limit of this request: the one that it brings, or the rule's own.
struct Checker::LimitOfRequest {
  const store::LimitEntry* limit = nullptr;
  std::span<const store::LimitChange> history{};
};

inline Checker::LimitOfRequest Checker::LimitFor(const PublishedLimit& limit,
                                                 std::string_view given) {
  if (limit.given != nullptr && !given.empty()) [[unlikely]]
    return GivenLimitFor(limit, given);
  return {.limit = limit.limit.get(), .history = limit.history};
}

inline bool Checker::AsksPermits(const Call& call) {
  return call.rules.limits_concurrency && !call.request.skips_permits;
}

// If requests may bring a limit, also for the requests that bring none: leases by two limits would
// be spent side by side.
inline SharedTerms TermsFor(const PublishedLimit& limit, SharedTerms terms) {
  if (limit.given != nullptr && terms.sharing == rule::Sharing::kLeased)
    terms.sharing = rule::Sharing::kExact;
  return terms;
}

// Limits and ids that a checker keeps for later requests.
struct Checker::Caches {
  absl::flat_hash_map<uint64_t, store::LimitHandle> overrides;
  // Limits of numbers that requests have brought, by limit of a rule.
  absl::flat_hash_map<std::pair<uint64_t, uint32_t>, store::LimitHandle> numbers;
  absl::flat_hash_map<algorithm::LimitSpec, store::LimitHandle> once_limits;
  std::optional<permit::Id> permit_id;  // the last one that this checker gave
};

}  // namespace headgate::limiter
