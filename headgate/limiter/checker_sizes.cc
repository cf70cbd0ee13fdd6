// The part of a Checker that is about limits with a cost by size, or a count by status.
#include <algorithm>

#include "headgate/base/check.h"
#include "headgate/limiter/bucket_key.h"
#include "headgate/limiter/checker.h"
#include "headgate/limiter/checker_scratch.h"

namespace headgate::limiter {

algorithm::Cost CostOf(const Request& request, const rule::Descriptor& descriptor,
                       const std::optional<rule::SizeCost>& size) {
  if (descriptor.cost) return *descriptor.cost;
  if (request.operation == Operation::kPeek) return 0;
  if (!size) return 1;
  const bool known = size->of == rule::SizeCost::Of::kRequestBytes && request.request_bytes;
  return known ? size->UnitsOf(*request.request_bytes) : size->reserve();
}

void Checker::ConcludeSizes(const Call& call, Response& response) const {
  const std::vector<BatchEntry>& batch = scratch_->batch;
  if (call.request.operation != Operation::kTake || response.repeated) return;
  for (size_t first = 0, end = 0; first < batch.size(); first = end) {
    end = first + 1;
    while (end < batch.size() && batch[end].request.joined != store::Joined::kNo) ++end;
    bool taken = true;
    bool sized = false;
    for (size_t i = first; i < end; ++i) {
      taken = taken && batch[i].settled.decision.allowed;
      sized = sized || scratch_->sources[i].size != nullptr;
    }
    if (!taken || !sized) continue;
    for (size_t i = first; i < end; ++i) {
      const Scratch::Source& source = scratch_->sources[i];
      // Otherwise it was looked at only, given back, or let through without the store.
      const bool counted =
          batch[i].request.operation == Operation::kTake && IsCounted(batch[i].settled.mode);
      if (source.size == nullptr || !counted) continue;
      response.sized.push_back({.descriptor = source.descriptor,
                                .limit_index = source.limit_index,
                                .key = batch[i].request.key,
                                .cost = *source.size,
                                .limit = *source.limit,
                                .taken = batch[i].request.cost,
                                .settled = batch[i].settled});
    }
  }
}

std::vector<SizeCharge> KeepCharges(const Request& request, const Response& response) {
  std::vector<SizeCharge> charges;
  std::shared_ptr<const KeptDescriptor> kept;
  uint32_t kept_index = 0;
  for (const SizeTake& take : response.sized) {
    if (kept == nullptr || kept_index != take.descriptor) {
      kept_index = take.descriptor;
      kept = std::make_shared<const KeptDescriptor>(request.domain,
                                                    request.descriptors[take.descriptor]);
    }
    charges.emplace_back(kept, take);
  }
  return charges;
}

Corrected Checker::Correct(const SizeCharge& charge, const SizeStep& step, base::Instant now,
                           Pending* pending) {
  const rule::Descriptor descriptor{.entries = charge.descriptor().entries(),
                                    .given_limit = charge.descriptor().given_limit()};
  const Request request{.domain = charge.descriptor().domain(),
                        .descriptors = {&descriptor, 1},
                        .operation = step.operation};
  Corrected corrected;
  const auto rules = BeginRound(request, pending);
  if (!rules.ok()) return corrected;
  Pending* const asked = decider_.may_wait() ? pending : nullptr;
  const Call call{.request = request, .rules = **rules, .pending = asked, .now = now};
  corrected.waiting = !DoStep(call, charge, step, corrected.settled);
  if (!corrected.waiting && asked != nullptr) asked->Forget();
  return corrected;
}

// False if the answer comes later. Leaves `settled` as it is if nothing is asked.
bool Checker::DoStep(const Call& call, const SizeCharge& charge, const SizeStep& step,
                     Settled& settled) {
  const bool undoes = step.operation == Operation::kUndo;
  if (undoes && !IsCounted(step.taken.mode)) return true;
  Match(call);
  const Matched& matched = scratch_->matched.front();
  if (matched.rule == nullptr || matched.rule->unlimited) return true;
  const PublishedRule& published = call.rules.published[matched.rule->index];
  const bool in_shadow = charge.limit_index() >= rule::kLimitsPerRuleMax;
  const std::vector<PublishedLimit>& limits =
      in_shadow ? published.shadow
                : LimitsOf(published, call.request.domain, call.request.descriptors.front(),
                           matched.match);
  const size_t k = charge.limit_index() - (in_shadow ? rule::kLimitsPerRuleMax : 0);
  if (k >= limits.size()) return true;
  if (!limits[k].cost && charge.cost().of != rule::SizeCost::Of::kSent) return true;
  const LimitOfRequest chosen = LimitFor(limits[k], call.request.descriptors.front().given_limit);
  const algorithm::Limit& limit = chosen.limit->limit;
  // How much has come back by itself is known only if the limit has stayed the same.
  if (undoes && limit.spec() != charge.limit().spec()) return true;

  scratch_->sources.assign({{0, charge.limit_index(), &limit, &charge.cost()}});
  scratch_->batch.assign({{.request = {.key = charge.key(),
                                       .limit = chosen.limit,
                                       .history = chosen.history,
                                       .cost = step.cost,
                                       .operation = step.operation,
                                       .taken_at = step.taken_at},
                           .terms = TermsFor(limits[k], decider_.TermsOf(*matched.rule)),
                           .settled = step.taken}});
  if (!DecidePart(call, 0, 1)) return false;
  settled = scratch_->batch.front().settled;
  return true;
}

}  // namespace headgate::limiter
