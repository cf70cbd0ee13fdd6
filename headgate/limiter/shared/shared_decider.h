// Decides with the buckets that all instances share. If the store is unreachable, the rule's policy
// decides.
//
//   a lease is held      → decided from the lease, without a message to the store (mode leased)
//   the store answers    → its decision (mode exact)
//   the store is unreachable, and the rule says
//     local              → this instance's share of the limit, from the memory store (mode local).
//                          The share begins with the last known rest of the shared bucket. Its
//                          admissions are taken from the shared bucket when the store is back.
//     allow              → allowed, uncounted (mode open)
//     deny               → denied (mode closed)
//
// One per event loop, for its thread only; all loops of the instance share the leases and the last
// known rests. Opens no socket; the store does that.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "headgate/base/pool.h"
#include "headgate/base/time.h"
#include "headgate/limiter/decider.h"
#include "headgate/limiter/lease/lease_books.h"
#include "headgate/limiter/pending.h"
#include "headgate/limiter/shared/debts.h"
#include "headgate/limiter/shared/instants.h"
#include "headgate/limiter/shared/local_decisions.h"
#include "headgate/limiter/shared/member.h"
#include "headgate/limiter/shared/outage.h"
#include "headgate/limiter/shared/return_pace.h"
#include "headgate/limiter/shared/shared_permits.h"
#include "headgate/permit/permit_table.h"
#include "headgate/rule/rule_set.h"
#include "headgate/store/backend_options.h"
#include "headgate/store/shared_store.h"
#include "headgate/store/store.h"

namespace headgate::limiter::shared {

// The default for rules without a policy.
struct SharedDeciderOptions {
  rule::OnStoreFailure on_store_failure = rule::OnStoreFailure::kLocal;
  rule::Sharing sharing = rule::Sharing::kLeased;
  // The timeout of one call to the store. Raise it if the store is far away; a client waits this
  // long.
  base::Duration timeout = store::CallOptions{}.timeout;
  // The leases of the instance, for the deciders of all its loops; must outlive the deciders. Null:
  // no leases, every decision asks the store.
  lease::LeaseBooks* leases = nullptr;
  // The last known rests of the instance. Null: the decider has its own.
  SharedRests* rests = nullptr;
  // The permits of the instance that are given while the store is unreachable. Null: the decider
  // has its own.
  permit::PermitTable* permits = nullptr;
  // The number of this loop, and of all loops: each looks after a part of the leases.
  uint32_t loop = 0;
  uint32_t loops = 1;
};

class SharedDecider final : public Decider {
 public:
  // Both stores must outlive the decider, must not call it back after its end, and share one table
  // of limits.
  SharedDecider(store::SharedStore& shared, store::Store& local,
                const SharedDeciderOptions& options);

  bool may_wait() const override { return true; }

  // The members of a joined group are debited one after the other, and refunded if one denies,
  // which other clients can see for a moment. A queue, which cannot be refunded, comes last. A
  // limit that counts denied requests keeps those that its own rule denied. The bucket of an id is
  // taken from when all others have allowed.
  bool Decide(std::span<BatchEntry> batch, Namer name, Pending* pending,
              base::Instant now) override;

  bool Increment(const CountRequest& request, PendingCounts& counts, base::Instant now) override;

  bool AskPermits(std::span<PermitEntry> batch, Namer name, Pending* pending,
                  base::Instant now) override;

  base::Instant TakenAt(const BatchEntry& entry) const override;

  // Periodic work for leases and debts: call it at next_wake(), or a little later.
  void OnTime();
  base::BootTime next_wake() const;
  // The process ends: returns the unspent leases, as fast as the store accepts them
  // (return_pace.h). Makes no decisions any more. Continues in OnTime, and calls `done` once,
  // perhaps at once: when the store has confirmed all returns, or has been given up. `keys`: the
  // number of keys for which the store has confirmed the return to this loop.
  using ReturnsDone = std::function<void(uint64_t keys)>;
  void ReturnLeases(ReturnsDone done);
  // Our clock has missed a pause: leases granted before are not spent any more.
  void DropLeases() {
    if (leases_ != nullptr) leases_->DropAll();
  }
  // Requests admitted without the store, by what happened to them.
  const Debts::Counters& debts() const { return local_.debts().counters(); }

  // Decisions by Mode, so far. From any thread.
  uint64_t decisions(Mode mode) const {
    return decisions_[static_cast<size_t>(mode)].load(std::memory_order_relaxed);
  }

 private:
  using State = std::shared_ptr<Pending::State>;
  struct Group;

  void GiveBack(HeldPermit& held, const permit::Id& id, base::Instant now) override {
    permits_.GiveBack(held, id, now);
  }
  void Renew(HeldPermit& held, base::Instant now) override { permits_.Renew(held, now); }

  static Member MemberOf(const BatchEntry& entry, base::Instant now);
  static store::TakeRequest TakeOf(const Member& member);

  // The receiver of an answer: a place in a request's State, or the continuation of its group.
  struct Receiver {
    State state{};
    size_t index = 0;
    std::function<void(const Settled&)> goes_on{};

    void operator()(const Settled& settled) const;
    void TellResumed() const {
      if (state->on_resumed) state->on_resumed();
    }
  };
  // The state of a pending call to the store until it is answered. Reused.
  struct PendingDecision {
    Member member;
    Receiver receiver;
    uint64_t held = 0;         // by this instance when the store was asked
    std::string name;          // of the bucket
    bool partly_done = false;  // a part of the refund went to leases
    // The store has denied it, and is asked once more with all that this instance held meanwhile.
    std::optional<algorithm::Decision> denied{};
    uint32_t decided_again = 0;  // how often
  };
  static constexpr uint32_t kDecidedAgainMost = 3;
  // The requests that wait for the answer to a message about a key: first the one that the message
  // asks for, if it asks for one.
  struct Waiting {
    PendingDecision* asker = nullptr;
    std::vector<PendingDecision*> others{};
  };

  void Prefetch(std::span<const BatchEntry> batch) const;
  store::SharedRequest RequestOf(const Member& member, std::string_view name) const;
  // How a request goes on that cannot be settled at once.
  struct Await {
    lease::LeaseMessage* message = nullptr;  // that asks for this request, to be sent
    bool joins = false;                      // a message about its key is under way
    algorithm::Decision beside{};  // if it has a limit: where that is another loop's message
  };
  // Decides without the store if possible; else sets `await`. `name` appends the bucket's name.
  bool SettleHere(const store::TakeRequest& request, const SharedTerms& terms,
                  lease::LeaseBook::Namer name, base::BootTime boot_now, Settled& settled,
                  Await& await);
  void Ask(Member member, lease::LeaseBook::Namer name, const Await& await, Receiver receiver);
  bool RefundHere(PendingDecision& pending);
  void BecomeUndo(Member& member, const Settled& taken) const;
  void UndoFromLeases(Member& member);
  bool UndoHere(PendingDecision& pending);
  void AskStore(PendingDecision& pending);
  void OnAnswered(PendingDecision& pending, const store::SharedAnswer& answer);
  void OnMessageAnswered(Waiting& waiting, const store::SharedAnswer& answer);
  void Join(PendingDecision& pending, const algorithm::Decision& beside);
  void DecideAgain(PendingDecision& pending);
  void Settle(PendingDecision& pending, const Settled& settled);
  void SettleWithout(PendingDecision& pending, const absl::Status& why, Owed owed);
  // Settled in `state`, from `first` on.
  void AskGroup(std::span<const BatchEntry> entries, Namer name, base::Instant now,
                const State& state, size_t first);
  bool IsLeased(const store::LimitEntry& limit, const SharedTerms& terms) const;
  // Whether the store has denied this lately, so that it is denied here without asking.
  bool IsDeniedHere(const Member& member) const;
  lease::LeaseMessage& Kept(const lease::LeaseAction& action);
  // Releases the message. The answer decides the asker's request, and is told to all who wait.
  void Send(lease::LeaseMessage& message, PendingDecision* asker = nullptr);
  void SendOutbox();
  void SendReturns();
  void OnReturned(bool only_returns, bool ok);
  void OnAnswer(const Member& member, const algorithm::Decision& decision);
  // The requests that this instance holds and may spend, for a look or a refund; 0 for a take,
  // whose answer does not state them.
  uint64_t HeldFor(const Member& member);
  // The store's decision in the form for the client. A look and a refund state what this instance
  // holds too: `held` is what it held when the store was asked. The `retry_after` of a denial
  // reaches to the end of the pause in which this instance does not ask the store again.
  algorithm::Decision ToldOf(const Member& member, const algorithm::Decision& decision,
                             uint64_t held);
  void AskForGroup(const std::shared_ptr<Group>& group, size_t index, const Member& member);
  void AskNext(const std::shared_ptr<Group>& group);
  // Asks the bucket of the group's id.
  void AskId(const std::shared_ptr<Group>& group, store::Operation operation,
             std::function<void()> then);
  // All members have been asked.
  void ConcludeGroup(const std::shared_ptr<Group>& group);
  void GiveBack(const std::shared_ptr<Group>& group);
  // The longest time in which a bucket of this limit, which is leased, refills without requests. A
  // grant does not contain this time.
  base::Duration FullAfter(const store::LimitEntry& limit, uint64_t remaining) const;
  void Count(Mode mode);

  store::SharedStore& shared_;
  const SharedDeciderOptions options_;
  lease::LeaseBooks* const leases_;
  const std::unique_ptr<SharedRests> own_rests_;
  SharedRests& rests_;
  const std::unique_ptr<permit::PermitTable> own_permits_;
  Instants instants_;
  SharedPermits permits_;
  LocalDecisions local_;
  base::Pool<PendingDecision> pending_;
  base::Pool<lease::LeaseMessage> messages_;
  std::vector<lease::LeaseMessage*> outbox_;
  uint32_t lease_messages_ = 0;  // in flight
  // The requests that wait for the last message of this loop about a key, while it is under way.
  struct HashOfKey {
    size_t operator()(const base::Hash128& key) const { return key.low; }
  };
  base::Pool<Waiting> waitings_;
  absl::flat_hash_map<base::Hash128, Waiting*, HashOfKey> waiting_;
  // Set when the process ends.
  struct Returns {
    ReturnPace pace;
    ReturnsDone done;  // null: already called
    size_t part = 0;   // of the leases
    uint64_t keys = 0;
    bool sending = false;
    bool has_more = true;  // there is room for more, only a pause holds them back
  };
  std::optional<Returns> returns_;
  std::array<std::atomic<uint64_t>, kModeCount> decisions_{};
};

}  // namespace headgate::limiter::shared
