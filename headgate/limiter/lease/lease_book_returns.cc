// The part of a lease book that the clock drives: leases that are idle or about to end are
// returned, and at the end of the process all of them.
#include <algorithm>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/limiter/lease/lease_book.h"

namespace headgate::limiter::lease {

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
      const TimerQueue::Entry entry = looks.Take();
      LeaseRecord& record = table_.At(entry.index);
      // An earlier look has taken its place.
      if (record.look_at != entry.at) continue;
      record.look_at = BootTime{0};
      const LeaseAction* action = Look(record, now);
      if (!record.leases.empty()) Enqueue(record, now);
      if (action != nullptr) perform(*action);
    }
  }
  return true;
}

const LeaseAction* LeaseBook::Look(LeaseRecord& record, BootTime now) {
  EndExpired(record, now);
  if (record.asked_number != 0 || record.leases.empty()) return nullptr;
  const Duration quiet = now - record.taken_at;
  const uint64_t left = record.leases.left();
  // Others may need it.
  if (left > 0 && quiet >= Demand::kInterval && !IsMissedByNobody(record, left, now))
    record.leases.Close(kNeverAt);
  // The message must arrive before the lease ends, and a key in use has its next lease by then.
  if (record.leases.left() > 0 && record.leases.begin()->deadline <= now + 3 * look_every_) {
    record.demand.AdvanceTo(now);
    if (quiet < options_.ttl && IsRenewalDue(record, now)) return Renew(record, now);
    if (quiet >= Demand::kInterval) record.leases.Close(now + 3 * look_every_);
  }
  // The next message of a key in use reports what is used up.
  const bool returns =
      quiet >= Demand::kInterval ? record.leases.HasReturns() : record.leases.HasUnspentReturns();
  return returns ? Return(record, now) : nullptr;
}

// Whether the other instances do not miss what is left of the leases until they end.
bool LeaseBook::IsMissedByNobody(const LeaseRecord& record, uint64_t left, BootTime now) const {
  const bool ends_late = record.leases.begin()->deadline > now + options_.ttl;
  return ends_late ? sizing_.IsTinyShare(record, left) : LeaseSizing::IsSmallShare(record, left);
}

void LeaseBook::Enqueue(LeaseRecord& record, BootTime now) {
  // A look is early enough two of the short delays before the end.
  const uint64_t left = record.leases.left();
  const bool late =
      left > 0 && LeaseSizing::IsSmallShare(record, left) && !record.leases.HasReturns();
  const Duration ends = late ? record.leases.begin()->deadline - now : Duration(0);
  size_t which = 0;
  if (ends >= first_look_late_ + 2 * look_every_) which = 1;
  if (ends >= tiny_look_late_ + 2 * look_every_ && sizing_.IsTinyShare(record, left))
    which = kTinyLooks;
  TimerQueue& looks = looks_[which];
  const BootTime due = looks.DueOf(now);
  if (record.look_at.ns != 0 && record.look_at <= due) return;
  record.look_at = due;
  looks.Add(table_.IndexOf(record), now);
}

const LeaseAction* LeaseBook::ReturnNext(BootTime now) {
  HEADGATE_DCHECK(closing_);
  for (TimerQueue& looks : looks_) {
    while (!looks.empty()) {
      LeaseRecord& record = table_.At(looks.Take().index);
      record.look_at = BootTime{0};
      record.leases.Close(kNeverAt);
      if (record.asked_number == 0 && record.leases.HasReturns()) return Return(record, now);
    }
  }
  return nullptr;
}

}  // namespace headgate::limiter::lease
