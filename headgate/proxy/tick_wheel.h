// Coarse timeouts of one loop. Setting and cancelling one is a few stores in a linked list, without
// an allocation; a timeout is late by at most two ticks.
//
// An entry that is often put off is not moved each time: when it is called, it checks the latest
// activity, and sets itself again if it was too early. So reads and writes touch no timer.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "headgate/base/time.h"

namespace headgate::proxy {

class TickWheel {
 public:
  static constexpr base::Duration kTick = std::chrono::milliseconds(100);
  // A timeout that is further away than 51 s waits for more than one round.
  static constexpr size_t kSlots = 512;

  // Cancels itself on destruction. The wheel must outlive it.
  class Entry {
   public:
    Entry() = default;
    virtual ~Entry() { Unlink(); }
    Entry(const Entry&) = delete;

    bool is_set() const { return next_ != this; }

   private:
    friend class TickWheel;
    // The entry is not set any more. It may set itself again, and may destroy itself and others.
    virtual void OnTick(base::Instant /*now*/) {}
    void Unlink();

    Entry* next_ = this;
    Entry* previous_ = this;
    int64_t tick_ = 0;
  };

  // `now` is the beginning of the first tick.
  explicit TickWheel(base::Instant now) : tick_(TickOf(now)) {}
  TickWheel(const TickWheel&) = delete;

  // Calls `entry` in the first Advance whose time is not before `due`. An earlier setting is
  // replaced.
  void Set(Entry& entry, base::Instant due);
  static void Cancel(Entry& entry) { entry.Unlink(); }
  // Calls all entries that are due.
  void Advance(base::Instant now);

 private:
  class Head final : public Entry {};

  static int64_t TickOf(base::Instant t) { return t.ns / kTick.count(); }
  Entry& SlotOf(int64_t tick) { return slots_[static_cast<size_t>(tick) % kSlots]; }
  static void Append(Entry& head, Entry& entry);
  void CallSlot(int64_t slot_tick, base::Instant now);

  std::array<Head, kSlots> slots_;
  int64_t tick_;  // all entries up to this one were called
};

}  // namespace headgate::proxy
