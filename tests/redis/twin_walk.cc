#include "tests/redis/twin_walk.h"

#include <algorithm>

#include <fmt/format.h>

namespace headgate::redis_host {
namespace {

using algorithm::Cost;
using algorithm::Decision;
using algorithm::Limit;
using algorithm::LimitSpec;
using base::Instant;
using model::AnySize;
using model::Between;
using model::OneIn;
using store::Operation;

constexpr int64_t kSecond = 1'000'000'000;
// Steps back are smaller than a step that resets a bucket's clock.
constexpr int64_t kBackMost = kSecond - 1;
constexpr size_t kTimesRemembered = 4;
// 4.3 s after 1970: an earlier time that a value remembers would be its checksum
// (headgate/store/redis/value_checksum.h).
constexpr int64_t kEarliest = int64_t{1} << 32;

}  // namespace

TwinWalk::TwinWalk(uint64_t seed, algorithm::Algorithm algorithm)
    : random_(seed), spec_(model::RandomSpec(random_, algorithm)) {
  now_ = OneIn(random_, 4) ? kEarliest + static_cast<int64_t>(AnySize(random_, 61))
                           : 1'790'000'000 * kSecond + static_cast<int64_t>(AnySize(random_, 50));
  latest_ = now_;
  story_ = fmt::format("{} at {}\n", model::Describe(spec_), now_);
}

TwinStep TwinWalk::Next() {
  now_ = NextTime();
  latest_ = std::max(latest_, now_);
  const uint64_t what = random_() % 100;
  if (what < 4) spec_ = model::RandomChange(random_, spec_);
  TwinStep step{
      .spec = spec_, .cost = 1, .operation = Operation::kTake, .now = Instant::FromNanos(now_)};
  if (what < 6) {
    step.operation = Operation::kReset;
  } else if (what < 16) {
    step.operation = Operation::kRefund;
  } else if (what < 24) {
    step.operation = Operation::kPeek;
  } else if (what < 32) {
    step.operation = Operation::kUndo;
    step.taken_at = NextTakenAt();
  } else if (what < 36) {
    step.operation = Operation::kCharge;
  }
  if (what < 4) step.operation = Operation::kTake;
  step.cost = NextCost();
  times_.push_back(step.now);
  if (times_.size() > kTimesRemembered) times_.erase(times_.begin());
  if (story_.size() > 10'000) story_ = "...\n";
  story_ += fmt::format("{} operation {} cost {} at {} taken at {}\n", model::Describe(step.spec),
                        static_cast<int>(step.operation), step.cost, now_, step.taken_at.ns);
  return step;
}

Instant TwinWalk::NextTakenAt() {
  if (times_.empty() || OneIn(random_, 8)) return Instant::FromNanos(NextTime());
  return times_[times_.size() - 1 - random_() % times_.size()];
}

std::optional<Decision> TwinWalk::Answer(const TwinStep& step) {
  const Limit limit = *Limit::Make(step.spec);
  const bool asks = AsksToPass(step.operation);
  if (GivesBack(step.operation) && !TakesRefunds(limit.algorithm())) return std::nullopt;
  if (step.operation == Operation::kReset) Forget();
  if (limit.denies_all()) return last_ = DenyAll(limit, asks ? step.cost : 0);

  algorithm::BucketState state = state_;
  testing::DequeHitLog hits = hits_;
  algorithm::RememberedUntil remembered_until = remembered_until_;
  if (used_under_) Change(*used_under_, limit, state, hits, remembered_until, step.now);
  const bool looks = OnlyLooks(step.operation, step.cost);
  if (step.operation == Operation::kPeek) {
    last_ = Peek(limit, state, hits, step.cost, step.now);
  } else if (looks || step.operation == Operation::kReset || step.operation == Operation::kTake) {
    last_ = Decide(limit, state, hits, asks ? step.cost : 0, step.now);
  } else if (step.operation == Operation::kRefund) {
    last_ = *Refund(limit, state, hits, step.cost, step.now);
  } else if (step.operation == Operation::kCharge) {
    last_ = Charge(limit, state, hits, step.cost, step.now);
  } else {
    last_ = *Undo(limit, state, hits, step.cost, step.taken_at, step.now);
  }
  if (looks || step.operation == Operation::kReset) return last_;
  state_ = state;
  hits_ = std::move(hits);
  remembered_until_ = remembered_until;
  used_under_ = limit;
  if (IsFresh(step.now)) Forget();
  return last_;
}

bool TwinWalk::IsFresh(Instant now) const {
  return !used_under_ ||
         std::max<Instant>({FreshAt(*used_under_, state_, hits_), remembered_until_,
                            MattersUntil(*used_under_, state_)}) <= std::max(now, state_.seen);
}

void TwinWalk::Forget() {
  used_under_.reset();
  state_ = {};
  hits_ = testing::DequeHitLog();
  remembered_until_ = {};
}

Cost TwinWalk::NextCost() {
  const Limit limit = *Limit::Make(spec_);
  switch (random_() % 16) {
    case 0:
      return 0;
    case 1:
    case 2:
      return Between(random_, 2, 5);
    case 3:
      return last_.remaining;
    case 4:
      return last_.remaining + 1;
    case 5:
      return limit.capacity() + random_() % 4 - 1;  // for 0: the largest cost
    case 6:
      return Between(random_, 0, limit.capacity());
    case 7:
      return OneIn(random_, 4) ? ~uint64_t{0} - random_() % 3 : AnySize(random_, 64);
    case 8:
      return last_.remaining / 2;
    default:
      return 1;
  }
}

int64_t TwinWalk::NextTime() {
  const int64_t step = model::RandomTimeStep(random_, spec_, last_, now_, /*back_bits=*/30);
  const int64_t at = base::Clamp(Instant::FromNanos(now_) + base::Duration(step)).ns;
  return std::max({kEarliest, latest_ - kBackMost, at});
}

}  // namespace headgate::redis_host
