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
// `remaining` of a decision here is what is held plus what the store said was left, less what it
// may have granted to a message whose answer was lost. So it is never above what the store could
// grant at its last answer; others may have taken some since. A denial never says that its own cost
// remains. `retry_after` is the first moment at which the cost can pass if nobody else takes
// anything and nothing is returned.
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
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "headgate/algorithm/decision.h"
#include "headgate/base/clock.h"
#include "headgate/base/hash.h"
#include "headgate/limiter/demand.h"
#include "headgate/limiter/held_leases.h"
#include "headgate/limiter/timer_queue.h"
#include "headgate/store/limit_table.h"
#include "headgate/store/shared_store.h"

namespace headgate::limiter {

struct LeaseBookOptions {
  // Drawn at random when the process started: no other instance ever has it.
  uint64_t node = 0;
  // Keys that are followed; 448 bytes each, resident once used. Requests for all other keys ask the
  // store.
  uint32_t keys_max = 65'536;
  // How long a lease lives at the store. Raise it if the store is slow; a node that dies withholds
  // its leases for this long.
  base::Duration ttl = std::chrono::seconds(2);
  // A lease ends earlier here by this part of its life: covers two clocks that are off by 1 % each,
  // with half as much again in reserve.
  uint32_t margin_percent = 5;
  // As long as a call of the store takes at most.
  base::Duration timeout = std::chrono::milliseconds(10);
  // A key gets a lease if this many requests are expected within half a TTL, or three if they are a
  // small share of the rest. Raise it to keep more keys exact.
  uint32_t requests_least = 4;
  // A smaller bucket is always exact: one node would hold most of it.
  uint64_t capacity_least = 8;
  // A bucket that fills in less is always exact: it would be empty between two messages.
  base::Duration fill_least = std::chrono::milliseconds(100);
  // The least time between two asks for a scarce key. A bucket that fills in less than eight times
  // that is asked eight times while it fills.
  base::Duration pause = std::chrono::milliseconds(50);
  // A pause is longer by up to this much, by a different part each time: if instances asked in a
  // fixed order, the one after the longest gap would get most of the refill.
  uint32_t pause_spread_percent = 50;
};

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
  // Requests: each that was granted has been spent, has gone back, was lost with its lease, or is
  // held.
  std::atomic<uint64_t> granted{0};
  std::atomic<uint64_t> spent{0};
  std::atomic<uint64_t> returned{0};
  std::atomic<uint64_t> expired_unspent{0};
  std::atomic<uint64_t> late_grants{0};   // came after their deadline, or to nobody
  std::atomic<uint64_t> evicted{0};       // keys, for others
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
  ~LeaseBook();
  LeaseBook(const LeaseBook&) = delete;

  static size_t BytesOf(uint32_t keys_max);

  // Decides here where it can. `name` appends the bucket's name where it is needed. The limit
  // denies not all; it is pinned by the caller until the call returns.
  LeaseVerdict Take(const base::Hash128& key, const store::LimitEntry& limit, algorithm::Cost cost,
                    Namer name, base::BootTime now);
  // The same for a request that awaited a lease, once OnGrant has heard of it. Never waits again.
  LeaseVerdict TakeAgain(const base::Hash128& key, const store::LimitEntry& limit,
                         algorithm::Cost cost, base::BootTime now);
  // Prefetches the records of keys that are about to be asked for. Call it for all keys first, and
  // then once more, which finds what the first pass has fetched.
  void PrefetchSet(const base::Hash128& key) const;
  void PrefetchRecord(const base::Hash128& key) const;

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
  uint32_t keys_followed() const { return keys_followed_; }

 private:
  static constexpr uint32_t kWays = 8;
  static constexpr base::BootTime kNeverAt{INT64_MAX};

  // The fields that a decision from a lease reads and writes are in the first two cache lines.
  struct alignas(64) Record {
    base::Hash128 key{};
    const store::LimitEntry* limit = nullptr;  // pinned by limit_pin
    Demand demand;
    base::BootTime taken_at{0};
    uint64_t shared_rest = 0;  // of the shared bucket, as last heard
    // Nothing is asked before; never while an ask is under way or the limit gives no leases.
    base::BootTime ask_from{0};
    // From then on, or with at most this much left, it is time for the next lease.
    base::BootTime renew_at{0};
    uint32_t renew_below = ~uint32_t{0};
    HeldLeases leases;

    base::BootTime reset_at{0};  // as last heard, too
    // Requests of at least `denied_cost` were denied (0: none was), and are until then.
    uint64_t denied_cost = 0;
    base::BootTime denied_until{0};
    // When the store was asked that said so. Says nothing any more after a ttl, however often it
    // was asked again.
    base::BootTime denied_at{0};
    // When a request of `retry_cost` can pass, as far as the store has said.
    base::BootTime retry_at{0};
    uint64_t retry_cost = 0;
    int64_t budget_even_at = 0;
    // The ask that is under way; 0: none is.
    uint64_t asked_number = 0;
    uint64_t asked_want = 0;
    uint64_t asked_least = 0;
    base::BootTime asked_at{0};
    // What follows from the limit.
    store::LimitHandle limit_pin;
    base::Duration pause{0};
    base::BootTime exact_until{0};  // after a change, or where too many hold leases
    // The most instances, this one included, that the store said to hold leases. Forgotten after
    // holders_until.
    uint32_t holders = 1;
    uint32_t granted_in_window = 0;  // to this instance, until reset_at; of a short window only
    base::BootTime holders_until{0};
    std::string name;
    bool queued = false;
    bool leasable = false;
    bool asked_exhausted = false;  // of a bucket that had nothing left
    bool asked_over_budget = false;
    bool asked_all = false;  // that is left of a window, since no other instance holds leases of it
    bool asked_before_change = false;  // of the limit: what is granted goes back
  };
  // 32 bits of the hash of each key; 0: free.
  struct alignas(sizeof(uint32_t) * kWays) Set {
    std::array<uint32_t, kWays> prints{};
  };

  const Record* Find(const base::Hash128& key) const;
  Record* Find(const base::Hash128& key) {
    return const_cast<Record*>(std::as_const(*this).Find(key));
  }
  Record* Insert(const base::Hash128& key, const store::LimitEntry& limit, base::BootTime now);
  void Drop(Record& record);
  Record* Victim(size_t set, const store::LimitClass& incoming, base::BootTime now);
  size_t SetOf(const base::Hash128& key) const { return key.low & (sets_.size() - 1); }
  bool Spend(Record& record, algorithm::Cost cost, base::BootTime now);
  bool Hold(Record& record, const HeldLease& lease);
  void SetLimit(Record& record, const store::LimitEntry& limit);
  void OnChange(Record& record, const store::LimitEntry& limit, base::BootTime now);

  // The rest in the shared bucket, as last reported.
  static bool IsSmallShare(const Record& record, uint64_t requests);
  bool IsWorthLease(const Record& record) const;
  uint64_t WantOf(const Record& record, algorithm::Cost least) const;
  const LeaseAction* MaybeAsk(Record& record, algorithm::Cost cost, bool spent, Namer name,
                              base::BootTime now);
  const LeaseAction* Ask(Record& record, uint64_t want, algorithm::Cost least, base::BootTime now);
  const LeaseAction* Return(Record& record, base::BootTime now) { return Ask(record, 0, 0, now); }
  base::Duration TurnOf(const Record& record, uint64_t granted) const;
  static uint64_t EvenShare(const Record& record);
  static bool MayHaveAll(const Record& record);
  uint64_t ShareLeft(const Record& record) const;
  const LeaseAction* Message(Record& record, uint64_t want, algorithm::Cost least);
  bool IsShortWindow(const Record& record) const;
  void HearHolders(Record& record, uint32_t holders, bool refused, base::BootTime now) const;
  void OnFailure(Record& record, uint64_t number, bool perhaps_done, base::BootTime now);
  void OnGranted(Record& record, const store::LeaseGrant& grant, uint64_t number,
                 base::BootTime now);
  void DropLeases(Record& record);
  static void HearRest(Record& record, uint64_t remaining, base::BootTime now);
  void OnRefused(Record& record, const store::LeaseGrant& grant, base::BootTime now);
  // Nobody is kept waiting who asks too often for a bucket that is at least half full.
  static bool HasPlenty(const Record& record, uint64_t rest) {
    return rest >= record.limit->limit.capacity() / 2;
  }
  bool IsScarce(const Record& record, const store::LeaseGrant& grant) const;
  base::Duration PauseOf(const Record& record, base::BootTime now) const;
  base::Duration LongestPauseOf(const Record& record) const;
  void SpendBudget(Record& record, base::BootTime now) const;
  const LeaseAction* Look(Record& record, base::BootTime now);
  void Enqueue(Record& record, base::BootTime now);
  void MayAskFrom(Record& record, base::BootTime at) const;
  void DropExpired(Record& record, base::BootTime now);

  bool IsDenied(const Record& record, algorithm::Cost cost) const {
    return record.denied_cost != 0 && cost >= record.denied_cost;
  }
  // Not for a denial of long ago: the bucket may have filled since.
  bool IsDeniedLately(const Record& record, algorithm::Cost cost, base::BootTime now) const {
    return IsDenied(record, cost) && now < record.denied_at + options_.ttl;
  }
  // A lease's life on this node.
  base::Duration Life(base::Duration ttl) const;
  // For a request, whether it was spent from a lease or not.
  LeaseVerdict VerdictOf(const Record& record, algorithm::Cost cost, bool spent,
                         base::BootTime now) const;
  algorithm::Decision Allowed(const Record& record, base::BootTime now) const;
  algorithm::Decision Denied(const Record& record, algorithm::Cost cost, base::BootTime now) const;
  base::Duration RetryAfter(const Record& record, algorithm::Cost cost, uint64_t remaining,
                            base::BootTime now) const;
  static base::Duration WholeAfter(const Record& record, algorithm::Cost cost, base::BootTime now);
  static base::Duration WindowEndsAfter(const Record& record, base::BootTime now);
  base::Duration ResetAfter(const Record& record, uint64_t remaining, base::BootTime now) const;

  const LeaseBookOptions options_;
  const base::Duration interval_;    // between renewals
  const base::Duration idle_after_;  // without a request
  // A denial is remembered for this long; then the key asks again before the denial loses its
  // meaning.
  const base::Duration denied_most_;
  const base::Duration look_every_;
  const base::Duration first_look_late_;  // if only the end matters
  std::vector<Set> sets_;
  Record* const records_;  // kWays for each set; a record is in use if it has a print
  const bool owns_pages_;
  uint32_t keys_followed_ = 0;
  // Records that hold something; the second counts those whose small share has just begun.
  std::array<TimerQueue, 2> looks_{TimerQueue(look_every_), TimerQueue(first_look_late_)};
  uint64_t last_number_ = 0;
  bool closing_ = false;
  LeaseAction action_;
  std::array<store::LeaseReport, HeldLeases::kMax> reports_;
  LeaseCounters counters_;
};

}  // namespace headgate::limiter
