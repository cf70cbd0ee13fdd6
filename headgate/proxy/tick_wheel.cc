#include "headgate/proxy/tick_wheel.h"

#include <algorithm>

namespace headgate::proxy {

void TickWheel::Entry::Unlink() {
  next_->previous_ = previous_;
  previous_->next_ = next_;
  next_ = this;
  previous_ = this;
}

void TickWheel::Append(Entry& head, Entry& entry) {
  entry.previous_ = head.previous_;
  entry.next_ = &head;
  head.previous_->next_ = &entry;
  head.previous_ = &entry;
}

void TickWheel::Set(Entry& entry, base::Instant due) {
  entry.Unlink();
  // The first tick that begins at `due` or later, but never one that was called already.
  const int64_t begun = TickOf(due);
  const bool on_tick = due.ns % kTick.count() == 0;
  entry.tick_ = std::max(tick_ + 1, on_tick ? begun : begun + 1);
  Append(SlotOf(entry.tick_), entry);
}

void TickWheel::Advance(base::Instant now) {
  const int64_t until = TickOf(now);
  // After a long pause, each slot is visited only once.
  const int64_t first = std::max(tick_ + 1, until - static_cast<int64_t>(kSlots) + 1);
  if (until <= tick_) return;
  tick_ = until;
  for (int64_t tick = first; tick <= until; ++tick) CallSlot(tick, now);
}

void TickWheel::CallSlot(int64_t slot_tick, base::Instant now) {
  Entry& slot = SlotOf(slot_tick);
  Head waiting;
  // A call may destroy any entry, and may set entries into this slot again.
  while (slot.is_set()) {
    Entry& entry = *slot.next_;
    entry.Unlink();
    Append(waiting, entry);
  }
  while (waiting.is_set()) {
    Entry& entry = *waiting.next_;
    entry.Unlink();
    if (entry.tick_ > tick_) {
      Append(slot, entry);
    } else {
      entry.OnTick(now);
    }
  }
}

}  // namespace headgate::proxy
