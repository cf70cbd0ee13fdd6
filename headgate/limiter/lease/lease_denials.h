// Denials without the store. While a key is overloaded, the rest that the store has named stands
// for one pause: a request that costs more than that and all that is held is denied here. Also what
// decisions made here tell the client.
//
// `remaining` is what is held plus what the store said was left. So it is never above what the
// store could grant at its last answer; others may have taken some since. A denial never says that
// its own cost remains. `retry_after` is a moment at which the cost passes at any instance if
// nobody else takes anything: another instance may have taken all that was left, and may deny for a
// pause.
#pragma once

#include <cstdint>

#include "headgate/algorithm/decision.h"
#include "headgate/base/clock.h"
#include "headgate/limiter/lease/lease_options.h"
#include "headgate/limiter/lease/lease_record.h"
#include "headgate/limiter/lease/lease_sizing.h"
#include "headgate/store/shared_store.h"

namespace headgate::limiter::lease {

class LeaseDenials {
 public:
  // Must outlive this object.
  explicit LeaseDenials(const LeaseSizing& sizing) : sizing_(sizing) {}

  // ---- What the store has said

  // The store has decided a request of this cost, with all that this instance had held before.
  void OnDecided(LeaseRecord& record, algorithm::Cost cost, const store::SharedAnswer& answer,
                 base::BootTime now) const;
  // Any other answer has said how much is left now.
  static void HearRest(LeaseRecord& record, uint64_t remaining) { record.shared_rest = remaining; }
  // Something has come back: the next request asks the store.
  static void Forget(LeaseRecord& record) { record.rest_until = base::BootTime{0}; }

  // ---- Decisions

  // Only of an overloaded key: of any other, the store knows what others have taken or given back
  // since.
  bool IsDenied(const LeaseRecord& record, algorithm::Cost cost, base::BootTime now) const {
    return now < record.rest_until && LacksRest(record, cost, now);
  }
  // The same while a message is under way, which finds out what is left now.
  bool IsDeniedBeside(const LeaseRecord& record, algorithm::Cost cost, base::BootTime now) const {
    return now < record.rest_until + record.pause && !LeaseSizing::IsWindowOver(record, now) &&
           LacksRest(record, cost, now);
  }
  // The least time that a denial of the store is told for: during it, this or another instance may
  // deny the request without asking again.
  base::Duration DeniedFor(const LeaseRecord& record, base::BootTime now) const;
  static algorithm::Decision Allowed(const LeaseRecord& record, base::BootTime now);
  algorithm::Decision Denied(const LeaseRecord& record, algorithm::Cost cost,
                             base::BootTime now) const;
  // The store's answer to a look or a refund, for which it counts the `held` requests as taken.
  static algorithm::Decision WithHeld(const algorithm::Limit& limit, algorithm::Cost cost,
                                      const algorithm::Decision& decision, uint64_t held);

 private:
  bool LacksRest(const LeaseRecord& record, algorithm::Cost cost, base::BootTime now) const {
    return cost > record.leases.left() + record.shared_rest && sizing_.IsOverloaded(record, now);
  }
  base::Duration RetryAfter(const LeaseRecord& record, algorithm::Cost cost,
                            base::BootTime now) const;
  static base::Duration AsLastTime(const LeaseRecord& record, algorithm::Cost cost);
  static base::Duration WholeAfter(const LeaseRecord& record, algorithm::Cost cost,
                                   base::BootTime now);
  static base::Duration WindowEndsAfter(const LeaseRecord& record, base::BootTime now);
  static base::Duration ResetAfter(const LeaseRecord& record, uint64_t remaining,
                                   base::BootTime now);

  const LeaseSizing& sizing_;
};

}  // namespace headgate::limiter::lease
