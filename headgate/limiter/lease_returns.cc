// What a book does as time passes: leases that are idle or about to end go back, and everything does at the end.
#include <algorithm>
#include <utility>

#include "headgate/limiter/lease_book.h"

namespace headgate::limiter {

using base::BootTime;
using base::Duration;

BootTime LeaseBook::next_wake() const {
  BootTime at = kNeverAt;
  for (const LookQueue& looks : looks_) {
    if (!looks.empty()) at = std::min(at, looks.due());
  }
  if (at == kNeverAt) return at;
  // In steps, so that a book that holds thousands wakes nobody thousands of times.
  const int64_t step = std::max<int64_t>(1, look_every_.count() / 8);
  return BootTime{(at.ns + step - 1) / step * step};
}

void LeaseBook::OnTime(BootTime now, Perform perform) {
  for (LookQueue& looks : looks_) {
    while (!looks.empty() && looks.due() <= now) {
      Record& record = records_[looks.Take()];
      record.queued = false;
      const LeaseAction* action = Look(record, now);
      if (!record.leases.empty()) Enqueue(record, now);
      if (action != nullptr) perform(*action);
    }
  }
}

const LeaseAction* LeaseBook::Look(Record& record, BootTime now) {
  DropExpired(record, now);
  const Duration quiet = now - record.taken_at;
  const bool idle = quiet >= idle_after_ && !IsSmallShare(record, record.leases.left());
  // What would end before it is looked at again, and before a message could arrive, goes back now.
  record.leases.Close(idle ? kNeverAt : now + 2 * look_every_);
  if (record.asked_number != 0) return nullptr;
  if (!record.leases.HasUnspentReturns() && !(idle && record.leases.HasReturns())) return nullptr;
  // The message goes anyway: where the key is asked for still, it brings the next lease.
  const bool wanted = quiet < idle_after_ && record.leases.left() < record.demand.cost() && record.denied_cost == 0;
  if (idle || closing_ || !wanted || now < record.ask_from || !IsWorthLease(record)) return Return(record, now);
  record.asked_exhausted = record.asked_for_instance = false;
  return Ask(record, WantOf(record, 1), 1, now);
}

void LeaseBook::Enqueue(Record& record, BootTime now) {
  if (std::exchange(record.queued, true)) return;
  // A look is early enough two of the short delays before the end.
  const bool late = IsSmallShare(record, record.leases.left()) &&
                    record.leases.begin()->deadline >= now + first_look_late_ + 2 * look_every_;
  looks_[late ? 1 : 0].Add(static_cast<uint32_t>(&record - records_), now);
}

void LeaseBook::ReturnAll(BootTime now, Perform perform) {
  closing_ = true;
  for (const LookQueue& looks : looks_) {
    for (const LookQueue::Entry& entry : looks) {
      Record& record = records_[entry.index];
      DropExpired(record, now);
      record.leases.Close(kNeverAt);
      // Even while an ask is under way: there may be no later.
      if (!record.leases.HasReturns()) continue;
      perform(*Message(record, 0, 0));
      counters_.returned.fetch_add(record.leases.OnTold(true), std::memory_order_relaxed);
    }
  }
}

}  // namespace headgate::limiter
