// How much a lease is asked for, and how often: decided from the demand for the key, what is left
// of its bucket, and the number of instances that hold leases of it. docs/internals/leases.md has
// the reasons.
#pragma once

#include <cstdint>

#include "headgate/algorithm/decision.h"
#include "headgate/base/clock.h"
#include "headgate/limiter/lease_options.h"
#include "headgate/limiter/lease_record.h"
#include "headgate/store/shared_store.h"

namespace headgate::limiter {

class LeaseSizing {
 public:
  // `options` must outlive this object.
  explicit LeaseSizing(const LeaseBookOptions& options)
      : options_(options), interval_(options.ttl / 2) {}

  // The time between two leases of a key if each lasts as long as planned.
  base::Duration interval() const { return interval_; }
  // How long this node may spend from a lease that lives for `ttl` at the store.
  base::Duration Life(base::Duration ttl) const;

  // ---- How much

  // Whether the other instances do not miss this many requests.
  static bool IsSmallShare(const LeaseRecord& record, uint64_t requests);
  // At least half of the bucket is left. An instance that asks too often need not wait then.
  static bool HasPlenty(const LeaseRecord& record, uint64_t rest) {
    return rest >= record.limit->limit.capacity() / 2;
  }
  bool IsWorthLease(const LeaseRecord& record) const;
  uint64_t WantOf(const LeaseRecord& record, algorithm::Cost least) const;
  static uint64_t EvenShare(const LeaseRecord& record);
  static bool MayHaveAll(const LeaseRecord& record);
  uint64_t ShareLeft(const LeaseRecord& record) const;
  void HearHolders(LeaseRecord& record, uint32_t holders, bool refused, base::BootTime now) const;

  // ---- How often

  // The time at which the next lease is due after this grant, which may be spent until `deadline`.
  base::BootTime RenewAt(const LeaseRecord& record, const store::LeaseGrant& grant,
                         base::BootTime deadline, uint64_t number) const;
  bool IsScarce(const LeaseRecord& record, const store::LeaseGrant& grant) const;
  base::Duration TurnOf(const LeaseRecord& record, uint64_t granted) const;
  base::Duration PauseOf(const LeaseRecord& record, base::BootTime now) const;
  base::Duration LongestPauseOf(const LeaseRecord& record) const;
  void SpendBudget(LeaseRecord& record, base::BootTime now) const;

 private:
  bool IsShortWindow(const LeaseRecord& record) const;

  const LeaseBookOptions& options_;
  const base::Duration interval_;
};

}  // namespace headgate::limiter
