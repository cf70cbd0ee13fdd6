// Denials without the store: a key that was refused, or was given too little, is denied here until
// the store may be asked again. Also what decisions made here tell the client.
//
// `remaining` is what is held plus what the store said was left, less what it may have granted to a
// message whose answer was lost. So it is never above what the store could grant at its last
// answer; others may have taken some since. A denial never says that its own cost remains.
// `retry_after` is the first moment at which the cost can pass if nobody else takes anything and
// nothing is returned.
#pragma once

#include <cstdint>

#include "headgate/algorithm/decision.h"
#include "headgate/base/clock.h"
#include "headgate/limiter/lease_options.h"
#include "headgate/limiter/lease_record.h"
#include "headgate/limiter/lease_sizing.h"
#include "headgate/store/shared_store.h"

namespace headgate::limiter {

class LeaseDenials {
 public:
  // Both must outlive this object.
  LeaseDenials(const LeaseBookOptions& options, const LeaseSizing& sizing)
      : options_(options), sizing_(sizing), denied_most_(options.ttl * 3 / 4) {}

  // ---- What the store has said

  // No lease was granted.
  void OnRefused(LeaseRecord& record, const store::LeaseGrant& grant, base::BootTime now) const;
  // A lease was granted, and the key has to pause when it is spent.
  void OnScarce(LeaseRecord& record, const store::LeaseGrant& grant, base::BootTime now) const;
  // The store decided a request of this cost itself.
  void OnExact(LeaseRecord& record, algorithm::Cost cost, const algorithm::Decision& decision,
               base::BootTime asked_at, base::BootTime now) const;
  // The store took a refund.
  void OnRefunded(LeaseRecord& record, uint64_t remaining, base::BootTime now) const;
  static void HearRest(LeaseRecord& record, uint64_t remaining, base::BootTime now);

  // ---- Decisions

  // False for a denial of long ago: the bucket may have filled since.
  bool IsDeniedLately(const LeaseRecord& record, algorithm::Cost cost, base::BootTime now) const {
    return record.IsDenied(cost) && now < record.denied_at + options_.ttl;
  }
  // For how long a request of this cost, which the store has denied, is denied here whatever the
  // store would say.
  base::Duration DeniedFor(const LeaseRecord& record, algorithm::Cost cost,
                           base::BootTime now) const;
  static algorithm::Decision Allowed(const LeaseRecord& record, base::BootTime now);
  // The store's answer to a look or a refund, for which it counts the `held` requests as taken.
  static algorithm::Decision WithHeld(const algorithm::Limit& limit, algorithm::Cost cost,
                                      const algorithm::Decision& decision, uint64_t held);
  algorithm::Decision Denied(const LeaseRecord& record, algorithm::Cost cost,
                             base::BootTime now) const;

 private:
  base::Duration RetryAfter(const LeaseRecord& record, algorithm::Cost cost, uint64_t remaining,
                            base::BootTime now) const;
  static base::Duration WholeAfter(const LeaseRecord& record, algorithm::Cost cost,
                                   base::BootTime now);
  static base::Duration WindowEndsAfter(const LeaseRecord& record, base::BootTime now);
  static base::Duration ResetAfter(const LeaseRecord& record, uint64_t remaining,
                                   base::BootTime now);

  const LeaseBookOptions& options_;
  const LeaseSizing& sizing_;
  // A denial is remembered for this long; then the key asks again before the denial loses its
  // meaning.
  const base::Duration denied_most_;
};

}  // namespace headgate::limiter
