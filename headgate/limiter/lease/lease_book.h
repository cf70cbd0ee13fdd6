// The leases that this node holds on shared buckets. The idea, the proof and an example:
// docs/internals/leases.md.
//
//   a request comes          →  spent from what is held
//   not enough is held       →  one message returns all that is held, and asks: the store decides
//                               with the whole bucket, and may grant a lease with its answer
//   a message is under way   →  the request awaits its answer
//   the key is overloaded    →  for one pause after a call, what exceeds all that is held and the
//                               rest that the store has named is denied here
//
// The next lease is asked for in the background when half of one is spent, or when its end is near.
// A rest that is not spent within about 100 ms is returned, unless nobody misses so little.
//
// A key that is asked for less often holds a tiny lease for the next request, and reports each one
// in the background.
//
//   lease_table.h     the records of the keys
//   lease_sizing.h    how much a lease is asked for, and how often
//   lease_denials.h   denials without the store, and what decisions tell the client
//
// A state machine: events and the time come in, verdicts and messages go out. It reads no clock,
// sends nothing and never allocates on the way of a decision (the first message about a key keeps
// the bucket's name). Not thread-safe; the event loops of an instance share lease_books.h, which
// splits the keys over several books.
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
#include "headgate/limiter/lease/held_leases.h"
#include "headgate/limiter/lease/lease_denials.h"
#include "headgate/limiter/lease/lease_options.h"
#include "headgate/limiter/lease/lease_record.h"
#include "headgate/limiter/lease/lease_sizing.h"
#include "headgate/limiter/lease/lease_table.h"
#include "headgate/limiter/lease/timer_queue.h"
#include "headgate/store/limit_table.h"
#include "headgate/store/shared_store.h"

namespace headgate::limiter::lease {

// A message to send: SharedRequest{.name, .limit, .lease = ask}; its answer goes to OnGrant.
struct LeaseAction {
  base::Hash128 key{};
  std::string_view name{};
  const store::LimitEntry* limit = nullptr;
  store::LeaseAsk ask{};
};
std::ostream& operator<<(std::ostream& out, const LeaseAction& action);

struct LeaseVerdict {
  // kAskStore: nothing is held that the store does not know of; it is asked for this request alone.
  // kAwait: `action` asks for this request, or, without an action, the message that is under way
  // has to be answered first: then TakeAgain. A loop that cannot wait for it, because it is another
  // loop's, gives the `decision` if it has a limit: the key is overloaded. Otherwise it
  // asks the store too.
  enum class Kind : uint8_t { kAskStore, kAwait, kAllowed, kDenied };
  Kind kind = Kind::kAskStore;
  algorithm::Decision decision{};
  // If it was allowed from leases: the newest of them, for GiveBack. Otherwise 0.
  uint64_t lease = 0;
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
  // The same for a request that has awaited an answer, and has been counted as demand.
  LeaseVerdict TakeAgain(const base::Hash128& key, const store::LimitEntry& limit,
                         algorithm::Cost cost, Namer name, base::BootTime now);
  // The decision about a Take of this cost, if a lease can pay it. Takes nothing, and does not
  // count as demand.
  std::optional<algorithm::Decision> Peek(const base::Hash128& key, const store::LimitEntry& limit,
                                          algorithm::Cost cost, base::BootTime now);
  // The requests that leases of this limit can pay.
  uint64_t Spendable(const base::Hash128& key, const store::LimitEntry& limit, base::BootTime now);
  // As LeaseTable; callable from any thread.
  void PrefetchSet(const base::Hash128& key) const { table_.PrefetchSet(key); }
  void PrefetchRecord(const base::Hash128& key) const { table_.PrefetchRecord(key); }

  // Applies the answer of the store to a Take that returned kAskStore. False: it was denied while
  // this node holds, or has asked for, what the store counted as taken: TakeAgain.
  [[nodiscard]] bool OnExact(const base::Hash128& key, const store::LimitEntry& limit,
                             algorithm::Cost cost, const store::SharedAnswer& answer,
                             base::BootTime now);

  // Whether a request of this cost is denied here without asking the store.
  bool IsDenied(const base::Hash128& key, const store::LimitEntry& limit, algorithm::Cost cost,
                base::BootTime now) const;
  // The least time that a client is told when the store has denied its request: a client that comes
  // earlier may come in vain.
  base::Duration DeniedFor(const base::Hash128& key, const store::LimitEntry& limit,
                           base::BootTime now) const;

  // Applies the answer to an action, or its failure: every action gets one. The decision in it is
  // that of the request for which the action was made. Returns null, or the action to send at once.
  [[nodiscard]] const LeaseAction* OnGrant(const base::Hash128& key, uint64_t number,
                                           const store::SharedAnswer& answer, base::BootTime now);

  // Undoes a Take that was allowed from leases up to `lease` (LeaseVerdict), as far as the store
  // has not been told of it; the rest must be undone at the store. Returns how much was undone.
  algorithm::Cost GiveBack(const base::Hash128& key, algorithm::Cost cost, uint64_t lease,
                           base::BootTime now);

  // A refund of `cost`: undoes spending from leases of this limit that have not ended, as GiveBack
  // does, and returns how much. The store has to be asked for the rest: a refund lowers the window
  // of its own time. `decision` is what is left, if something was undone.
  algorithm::Cost Refund(const base::Hash128& key, const store::LimitEntry& limit,
                         algorithm::Cost cost, algorithm::Decision& decision, base::BootTime now);

  // The bucket was refunded at the store, which has said what is left now.
  void OnRefunded(const base::Hash128& key, uint64_t remaining);
  // A charge has overdrawn the bucket: nothing that is held of it is spent any more. The next
  // message returns it.
  void OnOverdrawn(const base::Hash128& key, base::BootTime now);
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
  // Returns the newest lease that it may have spent from; 0 if it has not.
  uint64_t Spend(LeaseRecord& record, algorithm::Cost cost, base::BootTime now);
  LeaseVerdict Decide(LeaseRecord& record, algorithm::Cost cost, Namer name, base::BootTime now);
  LeaseVerdict AskFor(LeaseRecord& record, algorithm::Cost cost, Namer name, base::BootTime now);

  bool IsRenewalDue(const LeaseRecord& record, base::BootTime now) const;
  LeaseWish WishOf(const LeaseRecord& record, base::BootTime now) const;
  const LeaseAction* Renew(LeaseRecord& record, base::BootTime now);
  const LeaseAction* Return(LeaseRecord& record, base::BootTime now) {
    return Ask(record, 0, sizing_.NoWish(record, now), now);
  }
  const LeaseAction* Ask(LeaseRecord& record, algorithm::Cost cost, const LeaseWish& wish,
                         base::BootTime now);

  void OnFailure(LeaseRecord& record, uint64_t number, bool perhaps_done, base::BootTime now);
  void OnGranted(LeaseRecord& record, const store::LeaseGrant& grant, uint64_t number,
                 base::BootTime now);
  bool Hold(LeaseRecord& record, const HeldLease& lease);
  void DropLeases(LeaseRecord& record);
  void EndExpired(LeaseRecord& record, base::BootTime now);
  algorithm::Cost GiveBack(LeaseRecord& record, algorithm::Cost cost, uint64_t newest,
                           base::BootTime until, base::BootTime now);

  const LeaseAction* Look(LeaseRecord& record, base::BootTime now);
  bool IsMissedByNobody(const LeaseRecord& record, uint64_t left, base::BootTime now) const;
  void Enqueue(LeaseRecord& record, base::BootTime now);

  static constexpr size_t kTinyLooks = 2;

  const LeaseBookOptions options_;
  const LeaseSizing sizing_{options_};
  const LeaseDenials denials_{sizing_};
  const base::Duration look_every_;
  const base::Duration first_look_late_;  // if only the end matters
  const base::Duration tiny_look_late_;   // the same of a tiny lease
  LeaseTable table_;
  // Records that hold something; the second has those whose small lease has just begun, and the
  // third those of tiny leases.
  std::array<TimerQueue, 3> looks_{TimerQueue(look_every_), TimerQueue(first_look_late_),
                                   TimerQueue(tiny_look_late_)};
  uint64_t last_number_ = 0;
  bool closing_ = false;
  LeaseAction action_;
  std::array<store::LeaseReport, HeldLeases::kMax> reports_;
  LeaseCounters counters_;
};

}  // namespace headgate::limiter::lease
