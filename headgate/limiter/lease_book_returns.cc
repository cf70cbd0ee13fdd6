// The part of a lease book that the clock drives: leases that are idle or about to end are
// returned, and at the end of the process all of them.
#include <algorithm>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/limiter/lease_book.h"

namespace headgate::limiter {

using base::BootTime;
using base::Duration;

BootTime LeaseBook::next_wake() const {
  BootTime at = kNeverAt;
  for (const TimerQueue& looks : looks_) {
    if (!looks.empty()) at = std::min(at, looks.due());
  }
  if (at == kNeverAt) return at;
  // Rounded up, so that thousands of leases do not cause thousands of wake-ups.
  const int64_t step = std::max<int64_t>(1, look_every_.count() / 8);
  return BootTime{(at.ns + step - 1) / step * step};
}

bool LeaseBook::OnTime(BootTime now, Perform perform, uint32_t keys_most) {
  for (TimerQueue& looks : looks_) {
    for (; !looks.empty() && looks.due() <= now; --keys_most) {
      if (keys_most == 0) return false;
      LeaseRecord& record = table_.At(looks.Take());
      record.queued = false;
      const LeaseAction* action = Look(record, now);
      if (!record.leases.empty()) Enqueue(record, now);
      if (action != nullptr) perform(*action);
    }
  }
  return true;
}

const LeaseAction* LeaseBook::Look(LeaseRecord& record, BootTime now) {
  DropExpired(record, now);
  const Duration quiet = now - record.taken_at;
  const bool idle =
      quiet >= idle_after_ && !LeaseSizing::IsSmallShare(record, record.leases.left());
  // A lease that would end before the next look, and before a message could arrive, is returned
  // now.
  record.leases.Close(idle ? kNeverAt : now + 2 * look_every_);
  if (record.asked_number != 0) return nullptr;
  if (!record.leases.HasUnspentReturns() && !(idle && record.leases.HasReturns())) return nullptr;
  // The message is sent in any case. If the key still has demand, it asks for the next lease too.
  const bool wanted =
      quiet < idle_after_ && record.leases.left() < record.demand.cost() && record.denied_cost == 0;
  if (idle || closing_ || !wanted || now < record.ask_from || !sizing_.IsWorthLease(record))
    return Return(record, now);
  record.asked_exhausted = false;
  return Ask(record, sizing_.WantOf(record, 1), 1, now);
}

void LeaseBook::Enqueue(LeaseRecord& record, BootTime now) {
  if (std::exchange(record.queued, true)) return;
  // A look is early enough two of the short delays before the end.
  const bool late = LeaseSizing::IsSmallShare(record, record.leases.left()) &&
                    record.leases.begin()->deadline >= now + first_look_late_ + 2 * look_every_;
  looks_[late ? 1 : 0].Add(table_.IndexOf(record), now);
}

const LeaseAction* LeaseBook::ReturnNext(BootTime now) {
  HEADGATE_DCHECK(closing_);
  for (TimerQueue& looks : looks_) {
    while (!looks.empty()) {
      LeaseRecord& record = table_.At(looks.Take());
      record.queued = false;
      DropExpired(record, now);
      record.leases.Close(kNeverAt);
      if (record.asked_number == 0 && record.leases.HasReturns()) return Return(record, now);
    }
  }
  return nullptr;
}

}  // namespace headgate::limiter
