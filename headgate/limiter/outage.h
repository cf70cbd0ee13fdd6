// Remembers the rest of each shared bucket when the store stopped answering, so that the local
// substitute of a bucket begins with a share of this rest instead of full. Bounded; an unknown
// bucket counts as full.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>

#include "headgate/base/clock.h"
#include "headgate/base/hash.h"
#include "headgate/store/spin_lock.h"

namespace headgate::limiter {

// Not thread-safe.
class LastRests {
 public:
  static constexpr size_t kSlots = 256;

  // The store reported the rest. Without further requests the bucket is full again at `full_at`.
  void OnAnswer(const base::Hash128& key, uint64_t remaining, base::BootTime full_at) {
    SlotOf(key) = {.key = key, .remaining = remaining, .full_at = full_at, .known = true};
  }

  // The rest in the store's last answer. Returned only to the first caller after that answer, and
  // not if the bucket has had time to refill.
  std::optional<uint64_t> Take(const base::Hash128& key, base::BootTime now) {
    Slot& slot = SlotOf(key);
    if (!slot.known || slot.key != key) return std::nullopt;
    slot.known = false;
    if (now >= slot.full_at) return std::nullopt;
    return slot.remaining;
  }

 private:
  struct Slot {
    base::Hash128 key{};
    uint64_t remaining = 0;
    base::BootTime full_at{0};
    bool known = false;
  };

  Slot& SlotOf(const base::Hash128& key) { return slots_[key.high % kSlots]; }

  std::array<Slot, kSlots> slots_{};  // the latest of the keys that share a slot
};

// The same for an instance with all its event loops, which use one memory store for decisions
// without the shared store. Thread-safe: takes a lock for a few nanoseconds, but not for a decision
// from a lease.
class SharedRests {
 public:
  static constexpr size_t kParts = 32;

  void OnAnswer(const base::Hash128& key, uint64_t remaining, base::BootTime full_at) {
    Part& part = PartOf(key);
    const std::lock_guard<store::SpinLock> lock(part.lock);
    part.rests.OnAnswer(key, remaining, full_at);
  }
  std::optional<uint64_t> Take(const base::Hash128& key, base::BootTime now) {
    Part& part = PartOf(key);
    const std::lock_guard<store::SpinLock> lock(part.lock);
    return part.rests.Take(key, now);
  }

 private:
  struct alignas(64) Part {
    store::SpinLock lock;
    LastRests rests;
  };

  // Uses other bits of the hash than those that select the slot within a part.
  Part& PartOf(const base::Hash128& key) { return parts_[key.high >> 32 & (kParts - 1)]; }

  std::array<Part, kParts> parts_{};
};

}  // namespace headgate::limiter
