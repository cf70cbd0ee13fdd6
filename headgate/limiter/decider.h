// Decides batches of requests whose buckets and limits are known. The decider of an event loop
// decides requests that match rules and requests that bring their own limits (CL.THROTTLE), either
// with buckets of this process alone, or with buckets that all instances share (shared_decider.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "headgate/base/time.h"
#include "headgate/limiter/pending.h"
#include "headgate/limiter/pending_counts.h"
#include "headgate/limiter/permit_hold.h"
#include "headgate/permit/permit.h"
#include "headgate/rule/rule_set.h"
#include "headgate/store/store.h"

namespace headgate::limiter {

// The inputs of a decision by a shared bucket, in addition to its TakeRequest.
struct SharedTerms {
  rule::OnStoreFailure on_store_failure = rule::OnStoreFailure::kLocal;
  rule::Sharing sharing = rule::Sharing::kLeased;
  uint32_t fallback_share_ppm = 0;  // 0: an even part, by the number of instances
  // The bucket of an id, which is used up once a request with this id has passed. At most one in a
  // group.
  bool remembers_id = false;
};

// A request of a batch, and its answer. For an undo, `settled` says first how the cost was taken.
struct BatchEntry {
  store::TakeRequest request;
  SharedTerms terms{};
  Settled settled{};

  // Makes it an undo of what it has taken.
  void BecomeUndo() {
    request.operation = store::Operation::kUndo;
    request.taken_at = settled.decision.at;
    request.joined = store::Joined::kNo;
  }
};

// A request of a batch about the permits of a key (permit/permit.h), and its answer.
struct PermitEntry {
  base::Hash128 key;  // in this process
  permit::Ask ask{};
  SharedTerms terms{};
  // Keeps track of what is acquired. Only to acquire; null if `ask.max` is 0, to renew the permit
  // that the id may hold.
  PermitHold* hold = nullptr;
  PermitWatch watch{};
  // `allowed` means: there is room, or was held.
  Settled settled{};
};

// A change of a counter.
struct CountRequest {
  base::Hash128 key;      // in the memory store
  std::string_view name;  // in a shared store; used only if answers may come later
  algorithm::CounterChange change{};
};

class Decider {
 public:
  // Appends the name of a request's bucket in a shared store; the request is given by its position.
  using Namer = absl::FunctionRef<void(size_t index, std::string& name)>;

  explicit Decider(const SharedTerms& default_terms = {})
      : default_terms_(default_terms), permit_source_(std::make_shared<PermitSource>()) {}
  virtual ~Decider() { permit_source_->decider = nullptr; }
  Decider(const Decider&) = delete;
  Decider& operator=(const Decider&) = delete;

  // Whether answers may come later. If so, each call needs a Pending.
  virtual bool may_wait() const = 0;

  // Decides all requests of the batch in their order, including joined groups. False: the answers
  // come later, and are appended to `pending`. For one thread.
  virtual bool Decide(std::span<BatchEntry> batch, Namer name, Pending* pending,
                      base::Instant now) = 0;

  // Changes a counter, and adds the answer to `counts`. False: it comes later. Counters have no
  // policy for failures: without the store there is no answer but the reason (Unavailable: nothing
  // has changed; DeadlineExceeded, Aborted: the counter may have changed).
  virtual bool Increment(const CountRequest& request, PendingCounts& counts, base::Instant now) = 0;

  // Decides all requests of the batch about permits, in their order. False: the answers come later,
  // as for Decide.
  virtual bool AskPermits(std::span<PermitEntry> batch, Namer name, Pending* pending,
                          base::Instant now) = 0;

  // When the entry took its cost, on the clock of its bucket's store, or a little earlier. 0 if
  // that is not known: nothing can be undone then.
  virtual base::Instant TakenAt(const BatchEntry& entry) const { return entry.settled.decision.at; }

  const SharedTerms& default_terms() const { return default_terms_; }
  SharedTerms TermsOf(const rule::Rule& rule) const {
    const rule::Sharing sharing = rule.sharing.value_or(default_terms_.sharing);
    return {
        // Nobody asks for a lock and wants to be decided without it.
        .on_store_failure = sharing == rule::Sharing::kLocked
                                ? rule::OnStoreFailure::kDeny
                                : rule.on_store_failure.value_or(default_terms_.on_store_failure),
        .sharing = sharing,
        .fallback_share_ppm = rule.fallback_share_ppm.value_or(default_terms_.fallback_share_ppm)};
  }

 protected:
  friend class PermitHold;

  // The link from holds to their decider, which may end before them.
  const std::shared_ptr<PermitSource>& permit_source() const { return permit_source_; }
  // Gives a permit back. Nobody waits for the answer.
  virtual void GiveBack(HeldPermit& held, const permit::Id& id, base::Instant now) = 0;
  // Moves the end of a permit. Nobody waits for the answer.
  virtual void Renew(HeldPermit& held, base::Instant now) = 0;

 private:
  const SharedTerms default_terms_;
  const std::shared_ptr<PermitSource> permit_source_;
};

}  // namespace headgate::limiter
