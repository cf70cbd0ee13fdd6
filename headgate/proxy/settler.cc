#include "headgate/proxy/settler.h"

#include <iterator>
#include <optional>
#include <utility>

namespace headgate::proxy {

using limiter::Corrected;
using limiter::Mode;
using limiter::Operation;
using limiter::SizeStep;

// Settles one charge of one request. It takes one step after the other and waits for the answer to
// each step, while the size may still change. It may outlive its request.
class Settler::Settlement final : private HeldRequests::Entry {
 public:
  Settlement(Settler& settler, limiter::SizeCharge charge)
      : settler_(settler), charge_(std::move(charge)) {
    // The answer comes in the middle of other work. The settlement continues in a later turn of the
    // loop.
    if (settler_.checker_.may_wait())
      question_.emplace([this] { settler_.deferred_.Hold(*this, base::Instant{0}); });
  }

  void SetTo(const BodySizes& sizes, base::Instant now) {
    if (is_by_status()) return;
    bytes_ = SizeIn(sizes);
    if (!asking_) Go(now);
  }
  // A stream may never end, so the bytes that have passed are charged while it lasts.
  void RaiseTo(const BodySizes& sizes, base::Instant now) {
    const uint64_t bytes = SizeIn(sizes);
    if (bytes > bytes_ && charge_.IsLessThan(bytes)) SetTo(sizes, now);
  }
  void SetResponse(uint64_t bytes, base::Instant now) {
    if (charge_.cost().of == rule::SizeCost::Of::kResponseBytes) SetTo({.response = bytes}, now);
  }
  void SetStatus(const rule::AnswerStatus& status, base::Instant now) {
    if (!is_by_status() || counts_) return;
    const rule::SizeCost& cost = charge_.cost();
    counts_ = cost.of == rule::SizeCost::Of::kSent ? true : cost.counted.Counts(status);
    if (counts_ == false) GiveBack(now);
  }
  // Without a status, the service may have counted the request as a failure (of a login, for
  // example), so the request counts.
  void SetUnanswered() {
    if (!counts_) counts_ = true;
  }
  // Ends the settlement, at once or when the store has answered.
  void End(const BodySizes& sizes, base::Instant now) {
    SetTo(sizes, now);
    if (is_by_status() && !counts_) GiveBack(now);
    if (!asking_) return Remove();
    if (settler_.waiting_ == kWaitingMax) {
      Count(Mode::kClosed);
      return Remove();
    }
    ++settler_.waiting_;
    ended_ = true;
  }

  std::list<Settlement>::iterator self{};

 private:
  bool is_by_status() const { return !charge_.cost().counts_bytes(); }
  void GiveBack(base::Instant now) {
    bytes_ = 0;
    Go(now);
  }
  uint64_t SizeIn(const BodySizes& sizes) const {
    return charge_.cost().of == rule::SizeCost::Of::kRequestBytes ? sizes.request : sizes.response;
  }

  void Go(base::Instant now) {
    while (true) {
      if (!asking_) step_ = charge_.StepTo(bytes_);
      if (step_.cost == 0) return;
      limiter::Question* const question = question_ ? &*question_ : nullptr;
      const Corrected corrected = asking_
                                      ? settler_.checker_.ContinueCorrect(*question, now)
                                      : settler_.checker_.Correct(charge_, step_, now, question);
      asking_ = corrected.waiting;
      if (asking_) return;
      Count(corrected.settled.mode);
      charge_.OnStep(step_, corrected.settled);
    }
  }
  void Count(Mode mode) {
    const bool done = limiter::IsCounted(mode);
    SettleCounters& counters = settler_.counters_;
    if (step_.operation == Operation::kCharge) {
      (done ? counters.taken : counters.forgotten).Add(step_.cost);
    } else {
      (done ? counters.returned : counters.lapsed).Add(step_.cost);
    }
  }

  void OnDue(base::Instant now) override {
    Go(now);
    if (asking_ || !ended_) return;
    --settler_.waiting_;
    Remove();
  }
  void Remove() { settler_.settlements_.erase(self); }

  Settler& settler_;
  limiter::SizeCharge charge_;
  std::optional<limiter::Question> question_;
  uint64_t bytes_ = 0;
  std::optional<bool> counts_{};  // by status: whether the answer counts, once its head is known
  SizeStep step_{};
  bool asking_ = false;  // the store has not answered `step_`
  bool ended_ = false;
};

// Listens to one request.
class Settler::Followed final : public EndListener {
 public:
  Followed(Settler& settler, std::vector<limiter::SizeCharge> charges) : settler_(settler) {
    if (settler.closed_) return;
    for (limiter::SizeCharge& charge : charges) {
      Settlement& settlement = settler.settlements_.emplace_back(settler, std::move(charge));
      settlement.self = std::prev(settler.settlements_.end());
      settlements_.push_back(&settlement);
    }
  }

  void OnResponseSize(uint64_t bytes, base::Instant now) override {
    ForEach([&](Settlement& settlement) { settlement.SetResponse(bytes, now); });
  }
  void OnStatus(const rule::AnswerStatus& status, base::Instant now) override {
    ForEach([&](Settlement& settlement) { settlement.SetStatus(status, now); });
  }
  void OnUnanswered(base::Instant /*now*/) override {
    ForEach([](Settlement& settlement) { settlement.SetUnanswered(); });
  }
  void OnProgress(const BodySizes& sizes, base::Instant now) override {
    ForEach([&](Settlement& settlement) { settlement.RaiseTo(sizes, now); });
  }
  void OnEnded(const BodySizes& sizes, base::Instant now) override {
    ForEach([&](Settlement& settlement) { settlement.End(sizes, now); });
    settlements_.clear();
  }

 private:
  template <typename Do>
  void ForEach(const Do& act) {
    // Settlements are gone once the settler is closed.
    if (settler_.closed_) return;
    for (Settlement* const settlement : settlements_) act(*settlement);
  }

  Settler& settler_;
  std::vector<Settlement*> settlements_;
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
  settlements_.clear();
}

}  // namespace headgate::proxy
