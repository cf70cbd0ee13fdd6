// The leases that this node holds on shared buckets. The idea, the proof and an example:
// docs/internals/leases.md.
//
//            demand is worth a lease          granted
//     cold ─────────────────────────> asking ──────────> leased ──┐ renewed in the background when
//     each request   ^                 │  ^ a request      │  ^   │ half is spent or half of its
//     asks the store │        refused  │  │ after the      │  └───┘ life is over
//                    │                 v  │ pause          │ spent, and the key is scarce
//                    ├────────────── exhausted <───────────┤
//                    │               denied here           │
//                    └─ no demand (leases are returned), ──┘
//                       another limit (returned, then exact for one ttl), or no answer
//
// A key is scarce if it was refused, was given too little to last for a pause of 50 ms, or has been
// asked for more often than once per pause without getting what it wants. A scarce key is asked for
// at most once per pause, and requests are denied in between: it costs the store the same however
// often it is asked for.
//
//   lease_table.h     the records of the keys
//   lease_sizing.h    how much a lease is asked for, and how often
//   lease_denials.h   denials without the store, and what decisions tell the client
//
// A state machine: events and the time come in, verdicts and asks go out. It reads no clock, sends
// nothing and never allocates on the way of a decision (the first ask for a key keeps the bucket's
// name). Not thread-safe; the event loops of an instance share lease_books.h, which splits the keys
// over several books.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "headgate/algorithm/decision.h"
#include "headgate/base/clock.h"
#include "headgate/base/hash.h"
#include "headgate/limiter/held_leases.h"
#include "headgate/limiter/lease_denials.h"
#include "headgate/limiter/lease_options.h"
#include "headgate/limiter/lease_record.h"
#include "headgate/limiter/lease_sizing.h"
#include "headgate/limiter/lease_table.h"
#include "headgate/limiter/timer_queue.h"
#include "headgate/store/limit_table.h"
#include "headgate/store/shared_store.h"

namespace headgate::limiter {

// A message to send: SharedRequest{.name, .limit, .lease = ask}; its answer goes to OnGrant.
struct LeaseAction {
  base::Hash128 key{};
  std::string_view name{};
  const store::LimitEntry* limit = nullptr;
  store::LeaseAsk ask{};
};
std::ostream& operator<<(std::ostream& out, const LeaseAction& action);

struct LeaseVerdict {
  // kAwaitLease: `action` asks for a lease that this request needs too. When it has been answered,
  // TakeAgain.
  enum class Kind : uint8_t { kAskStore, kAwaitLease, kAllowed, kDenied };
  Kind kind = Kind::kAskStore;
  algorithm::Decision decision{};
  // To be performed; good until the book is asked the next time.
  const LeaseAction* action = nullptr;
};
std::ostream& operator<<(std::ostream& out, const LeaseVerdict& verdict);

// From any thread.
struct LeaseCounters {
  std::atomic<uint64_t> asked{0};
  // These four count requests. Each granted request is spent, is returned, expires with its lease,
  // or is still held.
  std::atomic<uint64_t> granted{0};
  std::atomic<uint64_t> spent{0};
  std::atomic<uint64_t> returned{0};
  std::atomic<uint64_t> expired_unspent{0};
  std::atomic<uint64_t> late_grants{0};   // came after their deadline, or to nobody
  std::atomic<uint64_t> not_followed{0};  // requests for keys that found no place

  // Unspent requests held. A read during a change can be slightly off.
  uint64_t held() const {
    const uint64_t gone = spent.load(std::memory_order_relaxed) +
                          returned.load(std::memory_order_relaxed) +
                          expired_unspent.load(std::memory_order_relaxed);
    const uint64_t all = granted.load(std::memory_order_relaxed);
    return all > gone ? all - gone : 0;
  }
};

class LeaseBook {
 public:
  using Namer = absl::FunctionRef<void(std::string& name)>;
  using Perform = absl::FunctionRef<void(const LeaseAction& action)>;

  // `records`: zeroed pages for BytesOf(options.keys_max), which outlive the book; null: the book
  // maps its own.
  explicit LeaseBook(const LeaseBookOptions& options, void* records = nullptr);
  LeaseBook(const LeaseBook&) = delete;

  static size_t BytesOf(uint32_t keys_max) { return LeaseTable::BytesOf(keys_max); }

  // Decides here where it can. `name` appends the bucket's name where it is needed. The limit
  // denies not all; it is pinned by the caller until the call returns.
  LeaseVerdict Take(const base::Hash128& key, const store::LimitEntry& limit, algorithm::Cost cost,
                    Namer name, base::BootTime now);
  // The same for a request that awaited a lease, once OnGrant has heard of it. Never waits again.
  LeaseVerdict TakeAgain(const base::Hash128& key, const store::LimitEntry& limit,
                         algorithm::Cost cost, base::BootTime now);
  // The decision about a Take of this cost, if a lease can pay it. Takes nothing, and does not
  // count as demand.
  std::optional<algorithm::Decision> Peek(const base::Hash128& key, const store::LimitEntry& limit,
                                          algorithm::Cost cost, base::BootTime now);
  // The requests that leases of this limit can pay.
  uint64_t Spendable(const base::Hash128& key, const store::LimitEntry& limit, base::BootTime now);
  // As LeaseTable; callable from any thread.
  void PrefetchSet(const base::Hash128& key) const { table_.PrefetchSet(key); }
  void PrefetchRecord(const base::Hash128& key) const { table_.PrefetchRecord(key); }

  // Applies the answer of the store to a Take that returned kAskStore, if there is one.
  void OnExact(const base::Hash128& key, const store::LimitEntry& limit, algorithm::Cost cost,
               const algorithm::Decision& decision, base::BootTime asked_at, base::BootTime now);

  // For how long a request of this cost, which the store has denied, is denied here whatever the
  // store would say: a client that comes earlier comes in vain.
  base::Duration DeniedFor(const base::Hash128& key, const store::LimitEntry& limit,
                           algorithm::Cost cost, base::BootTime now) const;

  // Applies the answer to an action, or its failure: every action gets one. Returns null, or the
  // action to send at once.
  [[nodiscard]] const LeaseAction* OnGrant(const base::Hash128& key, uint64_t number,
                                           const store::SharedAnswer& answer, base::BootTime now);

  // Undoes an allowed Take, as far as the store has not been told of it; the rest must be refunded
  // at the store.
  algorithm::Cost GiveBack(const base::Hash128& key, algorithm::Cost cost, base::BootTime now);

  // A refund of `cost`: undoes spending from leases of this limit as GiveBack does, and returns how
  // much. The store has to be asked for the rest. `decision` is what is left, if something was
  // undone.
  algorithm::Cost Refund(const base::Hash128& key, const store::LimitEntry& limit,
                         algorithm::Cost cost, algorithm::Decision& decision, base::BootTime now);

  // The bucket was refunded at the store, which has said what is left now: the next request asks.
  // If the key has been asked for more often than its budget allows, the next one behind a pause
  // does.
  void OnRefunded(const base::Hash128& key, uint64_t remaining, base::BootTime now);
  // The bucket was reset at the store, its leases with it: nothing of them is spent from now on.
  void OnReset(const base::Hash128& key);
  // Our clock has missed a pause: nothing that is held, or has been asked for, is spent any more.
  void DropAll();

  // Returns what is idle or about to end, and looks at `keys_most` keys at most: false where more
  // are due. To be called at next_wake(), or a little later.
  bool OnTime(base::BootTime now, Perform perform,
              uint32_t keys_most = std::numeric_limits<uint32_t>::max());
  // When OnTime has work to do, in steps of 1/128 of the TTL; the end of time if nothing is held.
  base::BootTime next_wake() const;

  // The process ends: asks for nothing more, and returns everything. Call it once.
  void Close() { closing_ = true; }
  // After Close: the message that returns all that is held of one more key; null if there is none
  // for now. A key for which a message is under way comes when that is answered, and so does one
  // whose return has failed.
  [[nodiscard]] const LeaseAction* ReturnNext(base::BootTime now);

  // Requests held for this key, including closed leases; null if the key is not followed.
  const HeldLeases* Held(const base::Hash128& key) const;

  const LeaseCounters& counters() const { return counters_; }
  uint32_t keys_followed() const { return table_.keys(); }
  // Keys that lost their place to others. Callable from any thread.
  uint64_t keys_evicted() const { return table_.evicted(); }

 private:
  // What follows from the record's limit.
  void SetTerms(LeaseRecord& record) const;
  void OnChange(LeaseRecord& record, const store::LimitEntry& limit, base::BootTime now);

  uint64_t LeftIn(LeaseRecord& record, base::BootTime now);
  bool Spend(LeaseRecord& record, algorithm::Cost cost, base::BootTime now);
  LeaseVerdict VerdictOf(const LeaseRecord& record, algorithm::Cost cost, bool spent,
                         base::BootTime now) const;

  const LeaseAction* MaybeAsk(LeaseRecord& record, algorithm::Cost cost, bool spent, Namer name,
                              base::BootTime now);
  const LeaseAction* Ask(LeaseRecord& record, uint64_t want, algorithm::Cost least,
                         base::BootTime now);
  const LeaseAction* Return(LeaseRecord& record, base::BootTime now) {
    return Ask(record, 0, 0, now);
  }
  const LeaseAction* Message(LeaseRecord& record, uint64_t want, algorithm::Cost least);

  void OnFailure(LeaseRecord& record, uint64_t number, bool perhaps_done, base::BootTime now);
  void OnGranted(LeaseRecord& record, const store::LeaseGrant& grant, uint64_t number,
                 base::BootTime now);
  bool Hold(LeaseRecord& record, const HeldLease& lease);
  void DropLeases(LeaseRecord& record);
  void DropExpired(LeaseRecord& record, base::BootTime now);

  const LeaseAction* Look(LeaseRecord& record, base::BootTime now);
  void Enqueue(LeaseRecord& record, base::BootTime now);

  const LeaseBookOptions options_;
  const LeaseSizing sizing_{options_};
  const LeaseDenials denials_{options_, sizing_};
  const base::Duration idle_after_;  // without a request
  const base::Duration look_every_;
  const base::Duration first_look_late_;  // if only the end matters
  LeaseTable table_;
  // Records that hold something; the second counts those whose small share has just begun.
  std::array<TimerQueue, 2> looks_{TimerQueue(look_every_), TimerQueue(first_look_late_)};
  uint64_t last_number_ = 0;
  bool closing_ = false;
  LeaseAction action_;
  std::array<store::LeaseReport, HeldLeases::kMax> reports_;
  LeaseCounters counters_;
};

}  // namespace headgate::limiter
