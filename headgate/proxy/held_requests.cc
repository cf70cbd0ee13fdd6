#include "headgate/proxy/held_requests.h"

#include <algorithm>

namespace headgate::proxy {

base::Instant HeldRequests::NextTime() const {
  const base::Instant first = entries_.empty() ? base::kInstantMax : (*entries_.begin())->due_;
  return awaiting_.empty() ? first : std::min(first, end_);
}

void HeldRequests::Insert(Entry& entry, base::Instant due) {
  entry.Leave();
  const base::Instant before = NextTime();
  entry.queue_ = this;
  entry.due_ = due;
  entry.number_ = ++last_number_;
  (due == base::kInstantMax ? awaiting_ : entries_).insert(&entry);
  if (WaitsForTime(entry)) ++waits_for_time_;
  if (!in_advance_ && NextTime() < before) wake_(NextTime());
}

void HeldRequests::Hold(Entry& entry, base::Instant due) { Insert(entry, due); }

void HeldRequests::Await(Entry& entry) { Insert(entry, base::kInstantMax); }

void HeldRequests::Release(Entry& entry) {
  (entry.due_ == base::kInstantMax ? awaiting_ : entries_).erase(&entry);
  if (WaitsForTime(entry)) --waits_for_time_;
  entry.queue_ = nullptr;
}

void HeldRequests::LetGo() {
  for (Entry* const entry : std::exchange(entries_, {})) Hold(*entry, base::Instant{0});
}

void HeldRequests::EndAt(base::Instant end) {
  end_ = end;
  wake_(base::Instant{0});
}

void HeldRequests::Advance(base::Instant now) {
  in_advance_ = true;
  while (!entries_.empty() && (*entries_.begin())->due_ <= now) {
    Entry& entry = **entries_.begin();
    Release(entry);
    entry.OnDue(now);
  }
  const auto end_last = [&](std::set<Entry*, Before>& of) {
    Entry& entry = **of.rbegin();
    Release(entry);
    entry.OnQueueEnded(now);
  };
  while (!entries_.empty() && (*entries_.rbegin())->due_ > end_) end_last(entries_);
  while (!awaiting_.empty() && end_ <= now) end_last(awaiting_);
  in_advance_ = false;
  if (NextTime() < base::kInstantMax) wake_(NextTime());
}

}  // namespace headgate::proxy
