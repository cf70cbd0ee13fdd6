#include "headgate/proxy/settler.h"

#include <algorithm>
#include <utility>

namespace headgate::proxy {

using algorithm::Cost;
using limiter::Corrected;
using limiter::Operation;

// Listens to one request.
class Settler::Followed final : public EndListener {
 public:
  Followed(Settler& settler, std::vector<limiter::SizeCharge> charges)
      : settler_(settler), charges_(std::move(charges)) {}

  void OnResponseSize(uint64_t bytes, base::Instant now) override {
    for (limiter::SizeCharge& charge : charges_) {
      if (charge.of() == rule::SizeCost::Of::kResponseBytes) settler_.Correct(charge, bytes, now);
    }
  }
  // A stream may never end. So it pays for what has passed, beyond what it has paid for already.
  void OnProgress(const BodySizes& sizes, base::Instant now) override {
    for (limiter::SizeCharge& charge : charges_) {
      const uint64_t bytes = SizeFor(charge, sizes);
      if (charge.IsLessThan(bytes)) settler_.Correct(charge, bytes, now);
    }
  }
  void OnEnded(const BodySizes& sizes, base::Instant now) override {
    for (limiter::SizeCharge& charge : charges_)
      settler_.Correct(charge, SizeFor(charge, sizes), now);
  }

 private:
  static uint64_t SizeFor(const limiter::SizeCharge& charge, const BodySizes& sizes) {
    return charge.of() == rule::SizeCost::Of::kRequestBytes ? sizes.request : sizes.response;
  }

  Settler& settler_;
  std::vector<limiter::SizeCharge> charges_;
};

// Work on one bucket. It asks, perhaps waits for the answer, and asks again.
class Settler::Task : private HeldRequests::Entry, private TickWheel::Entry {
 public:
  Task(Settler& settler, limiter::SizedLimit place)
      : settler_(settler), place_(std::move(place)), pending_([this] {
          // The answer comes in the middle of other work. The task goes on after it.
          settler_.deferred_.Hold(*this, base::Instant{0});
        }) {}

  // Goes on; at the end it removes itself.
  void Go(base::Instant now) {
    while (true) {
      const Cost cost = CostToAsk();
      if (cost == 0) return Remove();
      const Corrected corrected =
          settler_.checker_.Correct(place_, operation(), cost, now, &pending_);
      if (corrected.waiting) return;
      if (!corrected.known) {
        OnUnknown();
        return Remove();
      }
      if (const auto due = OnAnswer(corrected, now)) return settler_.wheel_.Set(*this, *due);
    }
  }

  std::list<std::unique_ptr<Task>>::iterator self{};

 protected:
  // The cost of the next question; the same until it is answered. 0: there is nothing left to do.
  virtual Cost CostToAsk() = 0;
  virtual Operation operation() const = 0;
  // When to ask again; absent: at once.
  virtual std::optional<base::Instant> OnAnswer(const Corrected& corrected, base::Instant now) = 0;
  virtual void OnUnknown() = 0;
  // When to look again, if nothing has happened that needs a question now.
  virtual std::optional<base::Instant> WaitsUntil(base::Instant /*now*/) { return std::nullopt; }

  Settler& settler() const { return settler_; }
  const limiter::SizedLimit& place() const { return place_; }

 private:
  void OnDue(base::Instant now) override { Go(now); }
  void OnTick(base::Instant now) override {
    if (const auto due = WaitsUntil(now)) return settler_.wheel_.Set(*this, *due);
    Go(now);
  }
  void Remove() { settler_.tasks_.erase(self); }

  Settler& settler_;
  const limiter::SizedLimit place_;
  limiter::Pending pending_;
};

// Gives units back, once.
class Settler::Return final : public Task {
 public:
  Return(Settler& settler, limiter::SizedLimit place, Cost cost)
      : Task(settler, std::move(place)), cost_(cost) {}

 private:
  Cost CostToAsk() override { return cost_; }
  Operation operation() const override { return Operation::kRefund; }
  std::optional<base::Instant> OnAnswer(const Corrected& corrected, base::Instant) override {
    const bool done = corrected.settled.mode != limiter::Mode::kClosed;
    (done ? settler().counters_.returned : settler().counters_.lapsed).Add(std::exchange(cost_, 0));
    return std::nullopt;
  }
  void OnUnknown() override { settler().counters_.lapsed.Add(cost_); }

  Cost cost_;
};

// Pays what one key owes: asks for all of it, else takes what is there, else waits until the bucket
// has the rest. While it waits, it looks now and then whether the debt or the rules have changed,
// and asks again then: the bucket may have the rest much earlier.
//
// If a part of a debt is taken back, whoever does so pays the rest of it, with a new payment. This
// one ends then.
class Settler::Payment final : public Task {
 public:
  using Task::Task;

 private:
  limiter::SizeDebts& debts() const { return settler().checker_.size_debts(); }

  Cost CostToAsk() override {
    while (cost_ == 0) {
      cost_ = debts().OwedBy(place().key);
      if (cost_ > 0 && !IsOwn()) return 0;
      if (cost_ == 0 && debts().EraseIfPaid(place().key)) return 0;
    }
    return cost_;
  }
  Operation operation() const override { return Operation::kTake; }

  std::optional<base::Instant> OnAnswer(const Corrected& corrected, base::Instant now) override {
    cost_ = 0;
    const algorithm::Decision& decision = corrected.settled.decision;
    if (corrected.settled.mode == limiter::Mode::kClosed)
      return Wait(decision.limit, now, now + kRetryAfter);
    const bool was_part = std::exchange(asked_part_, false);
    if (decision.allowed) {
      settler().counters_.taken.Add(corrected.asked);
      const Cost surplus = debts().Pay(place().key, corrected.asked);
      if (surplus > 0) settler().GiveBack(place(), surplus, now);
      return std::nullopt;
    }
    if (decision.never_fits()) {
      OnUnknown();
      return std::nullopt;
    }
    // Others may have taken meanwhile what was there.
    if (was_part || decision.remaining == 0)
      return Wait(decision.limit, now, now + decision.retry_after);
    asked_part_ = true;
    cost_ = decision.remaining;
    return std::nullopt;
  }
  base::Instant Wait(Cost capacity, base::Instant now, base::Instant due) {
    debts().Deny(place().key, due);
    due_ = due;
    capacity_ = capacity;
    awaited_ = Awaited();
    rules_ = settler().checker_.rules();
    return std::min(due, now + kLookAfter);
  }
  std::optional<base::Instant> WaitsUntil(base::Instant now) override {
    const bool changed = Awaited() != awaited_ || settler().checker_.rules() != rules_;
    if (now >= *due_ || changed || !IsOwn()) return std::nullopt;
    return std::min(*due_, now + kLookAfter);
  }
  // The units that the bucket has to contain.
  Cost Awaited() const { return std::min(debts().OwedBy(place().key), capacity_); }
  // False if there is another payment for the key, which has denied it, or will.
  bool IsOwn() const {
    if (!due_) return true;
    const auto debt = debts().Find(place().key);
    return debt && debt->due == *due_;
  }
  void OnUnknown() override { settler().counters_.forgotten.Add(debts().Forget(place().key)); }

  Cost cost_ = 0;            // of the question, until it is answered
  bool asked_part_ = false;  // the question is about what was there, not about all that is owed
  std::optional<base::Instant> due_;  // of the last time that it had to wait, and more about it:
  Cost capacity_ = 0;
  Cost awaited_ = 0;
  const rule::RuleSet* rules_ = nullptr;
};

Settler::Settler(limiter::Checker& checker, TickWheel& wheel, HeldRequests& deferred,
                 SettleCounters& counters)
    : checker_(checker), wheel_(wheel), deferred_(deferred), counters_(counters) {}

Settler::~Settler() = default;

std::unique_ptr<EndListener> Settler::Follow(std::vector<limiter::SizeCharge> charges) {
  return std::make_unique<Followed>(*this, std::move(charges));
}

void Settler::Close() {
  closed_ = true;
  tasks_.clear();
}

void Settler::Correct(limiter::SizeCharge& charge, uint64_t bytes, base::Instant now) {
  if (closed_) return;
  const limiter::SizeCharge::Correction correction = charge.CorrectTo(bytes, now);
  const limiter::SizedLimit& place = charge.place();
  if (correction.missing > 0) return Take(place, correction.missing, now);
  if (correction.surplus == 0) return;
  limiter::SizeDebts& debts = checker_.size_debts();
  const Cost cancelled = debts.Cancel(place.key, correction.surplus);
  if (cancelled > 0) {
    // The bucket has the rest earlier than it would have had the whole.
    if (const Cost rest = debts.Forget(place.key); rest > 0) Take(place, rest, now);
  }
  const Cost taken = correction.surplus - cancelled;
  const Cost back = std::min(taken, correction.returnable);
  counters_.lapsed.Add(taken - back);
  if (back > 0) GiveBack(place, back, now);
}

void Settler::Take(const limiter::SizedLimit& place, Cost cost, base::Instant now) {
  if (!checker_.may_wait()) {
    const Corrected corrected = checker_.Correct(place, Operation::kTake, cost, now, nullptr);
    if (!corrected.known) return counters_.forgotten.Add(cost);
    if (corrected.settled.decision.allowed) {
      counters_.taken.Add(corrected.asked);
      cost -= corrected.asked;
    }
    if (cost == 0) return;
  }
  switch (checker_.size_debts().Add(place.key, cost)) {
    case limiter::SizeDebts::Added::kPaid:
      return;
    case limiter::SizeDebts::Added::kNoPlace:
      return counters_.forgotten.Add(cost);
    case limiter::SizeDebts::Added::kToPay:
      break;
  }
  if (tasks_.size() >= kTasksMax)
    return counters_.forgotten.Add(checker_.size_debts().Forget(place.key));
  Begin(std::make_unique<Payment>(*this, place), now);
}

void Settler::GiveBack(const limiter::SizedLimit& place, Cost cost, base::Instant now) {
  if (!checker_.may_wait()) {
    const Corrected corrected = checker_.Correct(place, Operation::kRefund, cost, now, nullptr);
    return (corrected.known ? counters_.returned : counters_.lapsed).Add(cost);
  }
  if (tasks_.size() >= kTasksMax) return counters_.lapsed.Add(cost);
  Begin(std::make_unique<Return>(*this, place, cost), now);
}

void Settler::Begin(std::unique_ptr<Task> task, base::Instant now) {
  Task& begun = *tasks_.emplace_back(std::move(task));
  begun.self = std::prev(tasks_.end());
  begun.Go(now);
}

}  // namespace headgate::proxy
