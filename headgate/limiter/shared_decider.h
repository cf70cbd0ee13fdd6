// Decides with the buckets that all instances share. If the store cannot be asked, each rule says
// what happens.
//
//   a lease is held      → decided from the lease, without a message to the store (mode leased)
//   the store answers    → its decision (mode exact)
//   the store cannot be asked, and the rule says
//     local              → this instance's share of the limit, from the memory store (mode local).
//                          The share begins with what was last left at the store. What it lets
//                          through is taken from the shared bucket when the store is back.
//     allow              → allowed, uncounted (mode open)
//     deny               → denied (mode closed)
//
// One per event loop, used on its thread alone; the leases and the last known rests are the whole
// instance's. Opens no socket: the store does.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "headgate/base/pool.h"
#include "headgate/base/time.h"
#include "headgate/limiter/debts.h"
#include "headgate/limiter/decider.h"
#include "headgate/limiter/lease_books.h"
#include "headgate/limiter/local_shares.h"
#include "headgate/limiter/outage.h"
#include "headgate/limiter/pending.h"
#include "headgate/limiter/return_pace.h"
#include "headgate/limiter/settle_pace.h"
#include "headgate/rule/rule_set.h"
#include "headgate/store/shared_store.h"
#include "headgate/store/store.h"

namespace headgate::limiter {

// The default if a rule says nothing.
struct SharedDeciderOptions {
  rule::OnStoreFailure on_store_failure = rule::OnStoreFailure::kLocal;
  rule::Sharing sharing = rule::Sharing::kLeased;
  // How long one call of the store may take. Raise it where the store is far away; a client waits
  // as long.
  base::Duration timeout = std::chrono::milliseconds(10);
  // The leases of the instance, for the deciders of all its loops; must outlive them. Null: no
  // leases, every decision asks the store.
  LeaseBooks* leases = nullptr;
  // The same. Null: the fleet has its own.
  SharedRests* rests = nullptr;
  // Which loop this is, of how many: each looks after a part of the leases.
  uint32_t loop = 0;
  uint32_t loops = 1;
};

class SharedDecider final : public Decider {
 public:
  // Both stores must outlive the fleet, and call nothing back when it is gone. They share one table
  // of limits.
  SharedDecider(store::SharedStore& shared, store::Store& local,
                const SharedDeciderOptions& options);

  bool may_wait() const override { return true; }

  // A joined group is debited one after the other and what it took is given back when one denies,
  // which others can see for a moment; a queue, which takes nothing back, comes last. A limit that
  // counts denied requests keeps what its own rule denied.
  bool Decide(std::span<BatchEntry> batch, Namer name, Pending* pending,
              base::Instant now) override;

  // Periodic work for leases and debts: call it at next_wake(), or a little later.
  void OnTime();
  base::BootTime next_wake() const;
  // The process ends: what is left of leases goes back, as fast as the store takes it in
  // (return_pace.h). Nothing is decided any more. Goes on in OnTime, and calls `done` once, perhaps
  // at once: when the store has confirmed all, or when it has been given up. `keys`: for how many
  // keys the store has confirmed it to this loop.
  using ReturnsDone = std::function<void(uint64_t keys)>;
  void ReturnLeases(ReturnsDone done);
  // Our clock has missed a pause: no lease is spent any more that was granted before.
  void DropLeases() {
    if (leases_ != nullptr) leases_->DropAll();
  }
  // Requests admitted without the store, and what became of them.
  const Debts::Counters& debts() const { return debts_.counters(); }

  // Decisions by Mode, so far. From any thread.
  uint64_t decisions(Mode mode) const {
    return decisions_[static_cast<size_t>(mode)].load(std::memory_order_relaxed);
  }

 private:
  using State = std::shared_ptr<Pending::State>;
  // A request as it is kept until its answer comes.
  struct Member {
    base::Hash128 key;
    store::LimitHandle limit;
    algorithm::Cost cost;
    store::Operation operation;
    SharedTerms terms;
    base::Instant now;
    std::span<const store::LimitChange> history;  // kept by the request's State
    store::Joined joined;
  };
  struct Group;

  static Member MemberOf(const BatchEntry& entry, base::Instant now);
  static store::TakeRequest TakeOf(const Member& member);

  // Whom an answer is for: a place in a request's State, or, in a group, who goes on from there.
  struct Receiver {
    State state{};
    size_t index = 0;
    std::function<void(const Settled&)> goes_on{};

    void operator()(const Settled& settled) const;
  };
  // The state of a pending call to the store until it is answered. Reused.
  struct PendingDecision {
    Member member;
    Receiver receiver;
    base::BootTime asked_at{0};
    std::string name;  // of the bucket
  };

  void Prefetch(std::span<const BatchEntry> batch) const;
  store::SharedRequest RequestOf(const Member& member, std::string_view name) const;
  // Decides without the store where that can be; `awaited` is set to the lease that the request has
  // to wait for, if it has to. `name` appends the bucket's name.
  bool SettleHere(const store::TakeRequest& request, const SharedTerms& terms,
                  LeaseBook::Namer name, base::BootTime boot_now, Settled& settled,
                  LeaseMessage*& awaited);
  void Ask(Member member, LeaseBook::Namer name, LeaseMessage* awaited, Receiver receiver);
  bool RefundHere(PendingDecision& pending);
  void AskStore(PendingDecision& pending);
  void OnAnswered(PendingDecision& pending, const store::SharedAnswer& answer);
  void AwaitLease(PendingDecision& pending, LeaseMessage& message);
  void OnLease(PendingDecision& pending, const store::SharedAnswer& answer);
  void Settle(PendingDecision& pending, const Settled& settled);
  // Settled in `state`, from `first` on.
  void AskGroup(std::span<const BatchEntry> entries, Namer name, base::Instant now,
                const State& state, size_t first);
  bool IsLeased(const store::LimitEntry& limit, const SharedTerms& terms) const;
  LeaseMessage& Kept(const LeaseAction& action);
  // Releases the message. If a caller awaits it, the answer settles its pending.
  void Send(LeaseMessage& message, PendingDecision* awaiting = nullptr);
  void SendOutbox();
  void SendReturns();
  void OnReturned(bool only_returns, bool ok);
  void OnAnswer(const Member& member, const algorithm::Decision& decision, base::BootTime asked_at);
  // The store's decision as the client is told it: if it is a denial, `retry_after` reaches to the
  // end of the pause in which this instance does not ask the store again.
  algorithm::Decision WithPause(const Member& member, const algorithm::Decision& decision) const;
  void AskForGroup(const std::shared_ptr<Group>& group, size_t index, const Member& member);
  void AskNext(const std::shared_ptr<Group>& group);
  void GiveBack(const std::shared_ptr<Group>& group);
  // Whether the requests admitted by a local share must be taken from the shared bucket afterwards.
  // Not if the store may have counted them already.
  enum class Owed : bool { kNo, kYes };
  static Owed OwedAfter(const absl::Status& why);
  Settled Degraded(const Member& member, std::string_view name, const absl::Status& why, Owed owed);
  algorithm::Decision DecideLocally(const Member& member, std::string_view name,
                                    Owed owed = Owed::kYes);
  void NoteRest(const base::Hash128& key, uint64_t remaining, base::Duration full_after);
  // How long a bucket of this limit, which is leased, takes to be full again, at most, if nothing
  // comes. A grant does not say.
  base::Duration FullAfter(const store::LimitEntry& limit, uint64_t remaining) const;
  store::LimitHandle ShareOf(const Member& member);
  void SettleDebts();
  void Settle(Debts::Debt debt, algorithm::Cost cost);
  base::Instant InstantAt(base::BootTime now) const {
    return base::Instant::FromNanos(now.ns + instant_ahead_ns_);
  }
  void Count(Mode mode);

  store::SharedStore& shared_;
  store::Store& local_;
  const SharedDeciderOptions options_;
  LeaseBooks* const leases_;
  const std::unique_ptr<SharedRests> own_rests_;
  SharedRests& rests_;
  Debts debts_;
  SettlePace settle_pace_;
  // By the time of decisions, with which debts are paid and windows end; it may be earlier than the
  // store's clock.
  int64_t instant_ahead_ns_ = 0;
  LocalShares shares_;
  base::Pool<PendingDecision> pending_;
  base::Pool<LeaseMessage> messages_;
  std::vector<LeaseMessage*> outbox_;
  uint32_t lease_messages_ = 0;  // under way
  // Set when the process ends.
  struct Returns {
    ReturnPace pace;
    ReturnsDone done;  // null: it has been called
    size_t part = 0;   // of the leases
    uint64_t keys = 0;
    bool sending = false;
    bool has_more = true;  // and room for it: only a pause held it back
  };
  std::optional<Returns> returns_;
  std::array<std::atomic<uint64_t>, kModeCount> decisions_{};
};

}  // namespace headgate::limiter
