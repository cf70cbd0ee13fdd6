#include "headgate/limiter/size_charge.h"

#include <algorithm>
#include <utility>

#include "headgate/algorithm/token_bucket.h"

namespace headgate::limiter {

using algorithm::Cost;
using store::Operation;

SizeCharge::SizeCharge(std::shared_ptr<const KeptRequest> request, const SizeTake& take)
    : request_(std::move(request)),
      limit_index_(take.limit_index),
      key_(take.key),
      cost_(take.cost),
      limit_(take.limit) {
  Add(take.taken, take.settled);
}

SizeStep SizeCharge::StepTo(uint64_t bytes) const {
  const Cost wanted = cost_.UnitsOf(bytes);
  if (wanted > taken_) return {.operation = Operation::kCharge, .cost = wanted - taken_};
  if (wanted == taken_ || parts_.empty()) return {};
  const Part& part = parts_.back();
  const Cost surplus = std::min(part.cost, taken_ - wanted);
  return {.operation = Operation::kUndo,
          .cost = surplus,
          .taken = part.settled,
          .taken_at = base::Clamp(part.from + RefillOf(part.cost - surplus))};
}

void SizeCharge::OnStep(const SizeStep& step, const Settled& settled) {
  if (step.operation == Operation::kCharge) return Add(step.cost, settled);
  taken_ -= step.cost;
  parts_.back().cost -= step.cost;
  if (parts_.back().cost == 0) parts_.pop_back();
}

void SizeCharge::Add(Cost cost, const Settled& settled) {
  taken_ += cost;
  if (cost == 0) return;
  const base::Instant at = settled.decision.at;
  Part* const last = parts_.empty() ? nullptr : &parts_.back();
  const bool is_one_bucket = last != nullptr && algorithm::IsTokenBucket(limit_.algorithm()) &&
                             last->settled.mode == settled.mode && last->settled.lease == 0 &&
                             settled.lease == 0;
  if (is_one_bucket) {
    // The first part may have refilled completely before `at`; no more than all of it has.
    const base::Duration whole = RefillOf(last->cost) + base::Duration(1);  // rounded up
    last->from = std::max(last->from, base::Clamp(at - whole));
    last->cost += cost;
    return;
  }
  if (parts_.size() == kPartsMax) parts_.erase(parts_.begin());
  parts_.push_back({.cost = cost, .settled = settled, .from = at});
}

base::Duration SizeCharge::RefillOf(Cost cost) const {
  if (!algorithm::IsTokenBucket(limit_.algorithm()) || limit_.denies_all())
    return base::Duration(0);
  return base::Duration(static_cast<int64_t>(algorithm::PriceOfAny(limit_, cost).ns));
}

}  // namespace headgate::limiter
