#include "headgate/proxy/held_requests.h"

namespace headgate::proxy {

void HeldRequests::Hold(Entry& entry, base::Instant due) {
  entry.Leave();
  entry.queue_ = this;
  entry.due_ = due;
  entry.number_ = ++last_number_;
  const auto place = entries_.insert(&entry).first;
  if (place == entries_.begin() && !in_advance_) wake_(due);
}

void HeldRequests::Release(Entry& entry) {
  entries_.erase(&entry);
  entry.queue_ = nullptr;
}

void HeldRequests::Advance(base::Instant now) {
  in_advance_ = true;
  while (!entries_.empty() && (*entries_.begin())->due_ <= now) {
    Entry& entry = **entries_.begin();
    Release(entry);
    entry.OnDue(now);
  }
  in_advance_ = false;
  if (!entries_.empty()) wake_((*entries_.begin())->due_);
}

}  // namespace headgate::proxy
