// How much a lease is asked for, and how often: decided from the demand for the key.
// docs/internals/leases.md has the reasons.
#pragma once

#include <algorithm>
#include <cstdint>

#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/limit.h"
#include "headgate/base/clock.h"
#include "headgate/limiter/lease/lease_limit.h"
#include "headgate/limiter/lease/lease_options.h"
#include "headgate/limiter/lease/lease_record.h"

namespace headgate::limiter::lease {

// The lease that a node asks for, as in algorithm::LeaseAsk.
struct LeaseWish {
  uint64_t want = 0;
  uint64_t brief = 0;
  uint32_t parts = 1;
  base::Duration ttl{0};
};

class LeaseSizing {
 public:
  // `options` must outlive this object.
  explicit LeaseSizing(const LeaseBookOptions& options) : options_(options) {}

  // How long this node may spend from a lease that lives for `ttl` at the store.
  base::Duration Life(base::Duration ttl) const;

  // Whether every request asks the store, unless the key is overloaded: a bucket or window that is
  // full again within one ttl, and so slow that one call for each request costs little.
  bool IsExact(const algorithm::Limit& limit) const;
  // Whether a lease can be of use: a smaller bucket would be empty, or full again, between two
  // messages.
  static bool IsLargeEnough(const algorithm::Limit& limit);
  // Whether the other instances do not miss this many requests.
  static bool IsSmallShare(const LeaseRecord& record, uint64_t requests) {
    return requests <= record.shared_rest / algorithm::kSmallShare;
  }
  // Whether the other instances do not miss them for as long as a tiny lease lives either, even if
  // most of the rest goes meanwhile, and each of them holds as much.
  bool IsTinyShare(const LeaseRecord& record, uint64_t requests) const {
    const uint64_t share = std::max(options_.tiny_share, algorithm::kSmallShare * instances());
    return requests <= record.shared_rest / share;
  }
  // A lease for the demand of a ttl, if more than one request is expected in it. Otherwise a tiny
  // one for the next request, if the key was asked for within the life of such a lease, and
  // `tiny`. Otherwise none: `want` is 0.
  LeaseWish WishOf(const LeaseRecord& record, bool tiny, base::BootTime now) const;
  LeaseWish NoWish(const LeaseRecord& record, base::BootTime now) const {
    return {.parts = PartsOf(record, now), .ttl = options_.ttl};
  }
  // Whether each request asks the store, if the key is not overloaded: others may need what is
  // left. Not before the store has said what is left: the first burst for a key causes few calls.
  static bool IsNearExhaustion(const LeaseRecord& record) {
    return record.reset_at.ns != 0 && record.shared_rest < algorithm::kFewLeft;
  }
  // Whether the window of which the store has spoken has ended: another one is full.
  static bool IsWindowOver(const LeaseRecord& record, base::BootTime now) {
    return IsWindow(record.limit->limit) && now >= record.reset_at;
  }
  // Whether the key is asked for more often than its budget allows.
  static bool IsOverBudget(const LeaseRecord& record, base::BootTime now) {
    return record.budget_even_at > now.ns;
  }
  // Whether more is asked for than the limit gives: the budget is overspent, and a request was
  // denied lately. Or the bucket is not even empty after as many requests as it had left: an
  // instance that always comes just in time is not denied.
  bool IsOverloaded(const LeaseRecord& record, base::BootTime now) const {
    return IsOverBudget(record, now) && (now < record.refused_at + options_.ttl / 4 ||
                                         record.few_left_asks > algorithm::kFewLeft);
  }
  // The number of instances, as far as it is known.
  uint32_t instances() const {
    return std::clamp(options_.instances ? options_.instances() : 1u, 1u, 1u << 16);
  }
  // Counts a call about the key.
  void SpendBudget(LeaseRecord& record, base::BootTime now) const;

  // The time between two calls about a key that is asked for more often than it can answer.
  base::Duration PauseOf(const algorithm::Limit& limit) const;
  // How much later than it may such a key is asked for: less than the shortest pause, each time
  // another part of it.
  base::Duration SpreadOf(const LeaseRecord& record, base::BootTime now) const;
  base::Duration SpreadMost(const LeaseRecord& record) const;

 private:
  // Less than this part of the capacity is a last rest.
  static constexpr uint64_t kLastPart = 16;

  // Whether more than one request is expected within a ttl.
  bool IsWorthLease(const LeaseRecord& record) const;
  // Whether another request is likely to come while a tiny lease lives.
  bool IsWorthTiny(const LeaseRecord& record, base::BootTime now) const;
  // The demand for a ttl.
  uint64_t WantOf(const LeaseRecord& record) const;
  // The demand for about 100 ms; for a quarter of that where it may be all that is left, so that
  // little is held that others have been refused.
  uint64_t BriefOf(const LeaseRecord& record, base::BootTime now) const;
  // The part of the rest that a brief lease may be. If the key is overloaded, it may be all of the
  // last rest, so that the store names the moment at which there is more.
  uint32_t PartsOf(const LeaseRecord& record, base::BootTime now) const;
  bool MayTakeAll(const LeaseRecord& record, base::BootTime now) const;

  const LeaseBookOptions& options_;
};

}  // namespace headgate::limiter::lease
