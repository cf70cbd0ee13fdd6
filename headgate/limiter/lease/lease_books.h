// The leases of one instance, shared by its event loops: the keys are split over several books,
// each behind a lock of its own, as the memory store splits its buckets.
//
//   loop 1 ─┐             ┌─ lock ─ LeaseBook (keys whose hash begins with 0)
//   loop 2 ─┼─ LeaseBooks ┼─ lock ─ LeaseBook (… with 1)
//   loop 3 ─┘             └─ …
//
// For the store the instance is one node: whichever loop is asked spends from the same lease, and a
// scarce key is asked for once, not once by each loop. A message is sent by the loop whose request
// needs it, and its answer is taken in there.
//
// Thread-safe, but for what says otherwise. A lock is held for a few dozen nanoseconds; nothing is
// sent under it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "headgate/base/clock.h"
#include "headgate/base/hash.h"
#include "headgate/limiter/lease/kept_history.h"
#include "headgate/limiter/lease/lease_book.h"
#include "headgate/store/limit_table.h"
#include "headgate/store/shared_store.h"
#include "headgate/store/spin_lock.h"

namespace headgate::limiter::lease {

// A LeaseAction that is kept until it has been sent. Reused: its memory stays.
struct LeaseMessage {
  base::Hash128 key{};
  std::string name;
  store::LimitHandle limit;
  store::LeaseAsk ask{};  // its reports are those below
  std::array<store::LeaseReport, HeldLeases::kMax> reports{};
  // The knowledge of the request that caused the message. A message without such a request knows
  // nothing: for the book, a limit that has come back is another limit, whose first request asks
  // the store.
  KeptHistory history;
  base::Instant now{0};

  LeaseMessage() = default;
  LeaseMessage(const LeaseMessage&) = delete;
  LeaseMessage& operator=(const LeaseMessage&) = delete;
  void Keep(const LeaseAction& action);
};

// LeaseCounters of all keys. Read while they change they can be a few off.
struct LeaseTotals {
  uint64_t asked = 0;
  uint64_t granted = 0;
  uint64_t spent = 0;
  uint64_t returned = 0;
  uint64_t expired_unspent = 0;
  uint64_t late_grants = 0;
  uint64_t evicted = 0;
  uint64_t not_followed = 0;
  uint64_t held = 0;
};

class LeaseBooks {
 public:
  using Namer = LeaseBook::Namer;
  // Keeps an action that has to be sent when the call has returned. Called under a lock: asks
  // nothing of the books.
  using Keep = absl::FunctionRef<void(const LeaseAction& action)>;

  static constexpr uint32_t kParts = 64;

  // `parts` is a power of two; keys_max is that of all together.
  explicit LeaseBooks(const LeaseBookOptions& options, uint32_t parts = kParts);
  ~LeaseBooks();
  LeaseBooks(const LeaseBooks&) = delete;

  // As LeaseBook. The `action` of the verdict is null: the action was given to `keep`.
  LeaseVerdict Take(const base::Hash128& key, const store::LimitEntry& limit, algorithm::Cost cost,
                    Namer name, base::BootTime now, Keep keep);
  LeaseVerdict TakeAgain(const base::Hash128& key, const store::LimitEntry& limit,
                         algorithm::Cost cost, Namer name, base::BootTime now, Keep keep);
  std::optional<algorithm::Decision> Peek(const base::Hash128& key, const store::LimitEntry& limit,
                                          algorithm::Cost cost, base::BootTime now);
  uint64_t Spendable(const base::Hash128& key, const store::LimitEntry& limit, base::BootTime now);
  void PrefetchSet(const base::Hash128& key) const { PartOf(key).book.PrefetchSet(key); }
  void PrefetchRecord(const base::Hash128& key) const { PartOf(key).book.PrefetchRecord(key); }
  [[nodiscard]] bool OnExact(const base::Hash128& key, const store::LimitEntry& limit,
                             algorithm::Cost cost, const store::SharedAnswer& answer,
                             base::BootTime now);
  bool IsDenied(const base::Hash128& key, const store::LimitEntry& limit, algorithm::Cost cost,
                base::BootTime now) const;
  base::Duration DeniedFor(const base::Hash128& key, const store::LimitEntry& limit,
                           base::BootTime now) const;
  void OnGrant(const base::Hash128& key, uint64_t number, const store::SharedAnswer& answer,
               base::BootTime now, Keep keep);
  algorithm::Cost GiveBack(const base::Hash128& key, algorithm::Cost cost, uint64_t lease,
                           base::BootTime now);
  algorithm::Cost Refund(const base::Hash128& key, const store::LimitEntry& limit,
                         algorithm::Cost cost, algorithm::Decision& decision, base::BootTime now);
  void OnRefunded(const base::Hash128& key, uint64_t remaining);
  void OnOverdrawn(const base::Hash128& key, base::BootTime now);
  void OnReset(const base::Hash128& key);
  void DropAll();

  // Each of `loops` looks after a part of the keys. To be called again at once where more than a
  // few are due (false).
  bool OnTime(uint32_t loop, uint32_t loops, base::BootTime now, Keep keep);
  base::BootTime next_wake(uint32_t loop, uint32_t loops) const;
  // Every loop returns keys of all parts, since it may also be the one that hears of a key last.
  // `part` is where it looks first, and is moved on. False: there is nothing to return for now.
  void Close();
  bool ReturnNext(size_t& part, base::BootTime now, Keep keep);

  base::Duration ttl() const { return ttl_; }
  uint64_t node() const { return node_; }

  LeaseTotals totals() const;
  // Not thread-safe: for tests.
  const HeldLeases* Held(const base::Hash128& key) const { return PartOf(key).book.Held(key); }

 private:
  // Keys that one OnTime looks at under one lock.
  static constexpr uint32_t kLooksAtOnce = 16;

  struct alignas(64) Part {
    mutable store::SpinLock lock;
    LeaseBook book;
    Part(const LeaseBookOptions& options, void* records) : book(options, records) {}
  };

  // Not by the bits by which a book finds its place.
  size_t IndexOf(const base::Hash128& key) const { return key.high >> 32 & (parts_.size() - 1); }
  Part& PartOf(const base::Hash128& key) { return *parts_[IndexOf(key)]; }
  const Part& PartOf(const base::Hash128& key) const { return *parts_[IndexOf(key)]; }

  const base::Duration ttl_;
  const uint64_t node_;
  const uint64_t records_bytes_;  // of each part
  std::byte* const records_;
  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace headgate::limiter::lease
