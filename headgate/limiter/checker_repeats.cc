// The part of a Checker that is about requests whose id may hold permits already, because they are
// sent again.
//
//   the id holds a permit  →  an earlier one has passed: this one takes nothing from any bucket
//   otherwise              →  buckets decide, and only if they allow the permits are acquired
//
// In the usual order, permits first, a request that is sent twice at the same time would see the
// permits of its twin before the buckets have denied that.
#include <algorithm>
#include <utility>
#include <vector>

#include "headgate/limiter/checker.h"
#include "headgate/limiter/work.h"

namespace headgate::limiter {

using Kind = permit::Ask::Kind;

// Whether the request's id may hold permits of another request, and buckets decide about it as
// well.
bool Checker::MayRepeat(const Call& call) const {
  const Request& request = call.request;
  if (request.operation != Operation::kTake || request.permits == nullptr ||
      request.permits->owner_ != PermitHold::Owner::kPerhapsOther)
    return false;
  for (size_t i = 0; i < request.descriptors.size(); ++i) {
    const rule::Rule* const rule = work_->matched[i].rule;
    if (request.descriptors[i].override_limit || (rule != nullptr && !rule->limits.empty()))
      return true;
  }
  return false;
}

void Checker::MarkHeld(PermitHold& hold, PermitEntry& entry) {
  entry.hold = &hold;
  entry.ask.kind = Kind::kAcquire;
  entry.settled.was_held = true;
  entry.settled.decision.allowed = true;
  entry.settled.decision.retry_after = base::Duration(0);
}

// The second part for a request that may repeat another: buckets have been asked, and if they
// allow, the permits are acquired that its id does not hold. False if answers come later.
bool Checker::AcquireFound(const Call& call) {
  work_->acquired.clear();
  work_->acquired_places.clear();
  if (!work_->may_repeat || work_->repeated || !BucketsAllow(call)) return true;
  const std::vector<PermitEntry>& permits = work_->permits;
  for (size_t k = 0; k < permits.size(); ++k) {
    if (permits[k].ask.kind != Kind::kLook || !permits[k].settled.decision.allowed) continue;
    PermitEntry& acquired = work_->acquired.emplace_back(permits[k]);
    acquired.ask.kind = Kind::kAcquire;
    acquired.hold = call.request.permits;
    work_->acquired_places.push_back(k);
  }
  return DecidePermits(call, work_->acquired,
                       [&](size_t index) { return work_->acquired_places[index]; });
}

// Costs go back if a permit is refused after all, or if a request with the same id has got it
// meanwhile. False if answers come later.
bool Checker::GiveBackRefused(const Call& call) {
  const std::vector<size_t>& places = work_->acquired_places;
  if (places.empty()) return true;
  std::vector<PermitEntry>& permits = work_->permits;
  for (size_t k = 0; k < places.size(); ++k) permits[places[k]] = std::move(work_->acquired[k]);
  // If the store did not answer, it may have given the permit, and the next attempt finds it held.
  const auto refused = [&](size_t k) {
    const Settled& settled = permits[k].settled;
    return !settled.decision.allowed && settled.mode != Mode::kClosed;
  };
  // One of two such requests is the first to acquire this permit. It takes the costs of both.
  const auto first = std::find_if_not(places.begin(), places.end(), refused);
  const bool other_takes = first != places.end() && permits[*first].settled.was_held;
  if (!other_takes && std::none_of(places.begin(), places.end(), refused)) return true;
  const bool gives_all = other_takes || (work_->joined && !BucketsAllow(call));
  return GiveBackCosts(call, [&](uint32_t descriptor) {
    if (gives_all) return true;
    const auto& place = work_->permit_of[descriptor];
    return place && std::find(places.begin(), places.end(), *place) != places.end() &&
           refused(*place);
  });
}

// Whether the permit or a bucket of a descriptor denies, if they have been decided.
bool Checker::Denies(size_t descriptor) const {
  const PermitEntry* const permit = work_->PermitOf(static_cast<uint32_t>(descriptor));
  if (permit != nullptr && !permit->settled.decision.allowed) return true;
  for (size_t k = 0; k < work_->batch.size(); ++k) {
    const Work::Source& source = work_->sources[k];
    if (source.descriptor == descriptor && !source.of_shadow_rollout() &&
        !work_->batch[k].settled.decision.allowed)
      return true;
  }
  return false;
}

bool Checker::BucketsAllow(const Call& call) const {
  return PassesBy(call, [&](size_t i) {
    const rule::Rule* const rule = work_->matched[i].rule;
    return (rule != nullptr && rule->shadow_mode) || !Denies(i);
  });
}

// Gives back what the request took from the buckets of these descriptors, as far as they take it
// back. False if the answers come later.
bool Checker::GiveBackCosts(const Call& call, absl::FunctionRef<bool(uint32_t)> of_descriptor) {
  for (size_t k = 0; k < work_->batch.size(); ++k) {
    const BatchEntry& entry = work_->batch[k];
    const uint32_t descriptor = work_->sources[k].descriptor;
    if (descriptor == kOfOnce || entry.request.operation != Operation::kTake ||
        !entry.settled.decision.allowed || IsDegraded(entry.settled.mode) ||
        !algorithm::TakesRefunds(entry.request.limit->limit.algorithm()) ||
        !of_descriptor(descriptor))
      continue;
    work_->undos.push_back(entry);
    work_->undos.back().BecomeUndo();
    work_->undo_places.push_back(k);
  }
  return DecideBuckets(call, work_->undos, [&](size_t index) { return work_->undo_places[index]; });
}

void Checker::ReadReturns() {
  for (size_t k = 0; k < work_->undos.size(); ++k) {
    BatchEntry& entry = work_->batch[work_->undo_places[k]];
    const Settled& undone = work_->undos[k].settled;
    if (!IsDegraded(undone.mode)) entry.settled.decision.remaining = undone.decision.remaining;
    // Nothing of it is there to be given back again.
    entry.request.operation = Operation::kPeek;
  }
  work_->undos.clear();
  work_->undo_places.clear();
}

}  // namespace headgate::limiter
