// Remembers the store's last answer about each shared bucket. If the store stops answering, the
// local substitute of a bucket begins with a share of the rest instead of full. And it tells the
// time of the store's clock. Bounded; an unknown bucket counts as full.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <optional>

#include "headgate/base/clock.h"
#include "headgate/base/hash.h"
#include "headgate/base/time.h"
#include "headgate/store/spin_lock.h"

namespace headgate::limiter::shared {

// Not thread-safe.
class LastRests {
 public:
  static constexpr size_t kSlots = 256;

  // An answer of the store.
  struct Answer {
    uint64_t remaining = 0;
    base::BootTime full_at{0};  // the bucket, without further requests
    base::Instant at{0};        // when it was given, on the store's clock
    base::BootTime heard_at{0};
  };
  void OnAnswer(const base::Hash128& key, const Answer& answer) {
    SlotOf(key) = {.key = key, .answer = answer, .known = true};
  }

  struct Rest {
    uint64_t remaining = 0;
    base::BootTime full_at{0};
    bool operator==(const Rest&) const = default;
  };

  // The rest in the store's last answer. Returned only to the first caller after that answer, and
  // not if the bucket has had time to refill.
  std::optional<Rest> Take(const base::Hash128& key, base::BootTime now) {
    Slot& slot = SlotOf(key);
    if (!slot.known || slot.key != key) return std::nullopt;
    slot.known = false;
    if (now >= slot.answer.full_at) return std::nullopt;
    return Rest{.remaining = slot.answer.remaining, .full_at = slot.answer.full_at};
  }

  // The time of the store's clock at `time`, or a little earlier: an answer is given before it is
  // heard, and the two clocks differ in speed by less than one in kDrift. Empty if this key's
  // answer is not known any more.
  std::optional<base::Instant> StoreTimeAt(const base::Hash128& key, base::BootTime time) {
    const Slot& slot = SlotOf(key);
    const base::Duration since = time - slot.answer.heard_at;
    if (slot.key != key || slot.answer.at.ns == 0) return std::nullopt;
    return slot.answer.at + since - std::max(since, -since) / kDrift;
  }

 private:
  static constexpr int64_t kDrift = 64;

  struct Slot {
    base::Hash128 key{};
    Answer answer{};
    bool known = false;  // and not returned by Take yet
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

  void OnAnswer(const base::Hash128& key, const LastRests::Answer& answer) {
    Part& part = PartOf(key);
    const std::lock_guard<store::SpinLock> lock(part.lock);
    part.rests.OnAnswer(key, answer);
  }
  std::optional<base::Instant> StoreTimeAt(const base::Hash128& key, base::BootTime time) {
    Part& part = PartOf(key);
    const std::lock_guard<store::SpinLock> lock(part.lock);
    return part.rests.StoreTimeAt(key, time);
  }
  std::optional<LastRests::Rest> Take(const base::Hash128& key, base::BootTime now) {
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

}  // namespace headgate::limiter::shared
