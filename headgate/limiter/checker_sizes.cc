// The part of a Checker that is about limits with a cost by size, or a count by status.
#include <algorithm>

#include "headgate/base/check.h"
#include "headgate/limiter/bucket_key.h"
#include "headgate/limiter/checker.h"
#include "headgate/limiter/work.h"

namespace headgate::limiter {

algorithm::Cost CostOf(const Request& request, const rule::Descriptor& descriptor,
                       const std::optional<rule::SizeCost>& size) {
  if (descriptor.cost) return *descriptor.cost;
  if (request.operation == Operation::kPeek && !request.peeks_as_take) return 0;
  if (!size) return 1;
  const bool known = size->of == rule::SizeCost::Of::kRequestBytes && request.request_bytes;
  return known ? size->UnitsOf(*request.request_bytes) : size->reserve();
}

// The cost by size of a request of the batch; null if its cost is known.
const rule::SizeCost* Checker::SizeOf(const Call& call, size_t index) const {
  static const rule::SizeCost kSent{.of = rule::SizeCost::Of::kSent};
  const Work::Source& source = work_->sources[index];
  if (source.size != nullptr || source.descriptor == kOfOnce) return source.size;
  // A turn in a queue is not given back.
  const bool can_return = work_->has_waited && call.request.may_stay_unsent &&
                          algorithm::TakesRefunds(source.limit->algorithm());
  return can_return ? &kSent : nullptr;
}

void Checker::ConcludeSizes(const Call& call, Response& response) const {
  const std::vector<BatchEntry>& batch = work_->batch;
  if (call.request.operation != Operation::kTake || response.repeated) return;
  for (size_t first = 0, end = 0; first < batch.size(); first = end) {
    end = first + 1;
    while (end < batch.size() && batch[end].request.joined != store::Joined::kNo) ++end;
    bool taken = true;
    bool sized = false;
    for (size_t i = first; i < end; ++i) {
      taken = taken && batch[i].settled.decision.allowed;
      sized = sized || SizeOf(call, i) != nullptr;
    }
    if (!taken || !sized) continue;
    for (size_t i = first; i < end; ++i) {
      const Work::Source& source = work_->sources[i];
      // Otherwise it was looked at only, given back, or let through without the store.
      const bool counted =
          batch[i].request.operation == Operation::kTake && IsCounted(batch[i].settled.mode);
      const rule::SizeCost* const size = SizeOf(call, i);
      if (size == nullptr || !counted) continue;
      response.sized.push_back({.descriptor = source.descriptor,
                                .limit_index = source.limit_index,
                                .key = batch[i].request.key,
                                .cost = *size,
                                .limit = *source.limit,
                                .taken = batch[i].request.cost,
                                .settled = batch[i].settled});
    }
  }
}

std::vector<SizeCharge> KeepCharges(const Request& request, const Response& response) {
  std::vector<SizeCharge> charges;
  std::shared_ptr<const KeptRequest> kept;
  uint32_t kept_index = 0;
  for (const SizeTake& take : response.sized) {
    if (kept == nullptr || kept_index != take.descriptor) {
      kept_index = take.descriptor;
      kept = std::make_shared<const KeptRequest>(
          Request{.domain = request.domain,
                  .descriptors = request.descriptors.subspan(take.descriptor, 1)});
    }
    charges.emplace_back(kept, take);
  }
  return charges;
}

Corrected Checker::Correct(const SizeCharge& charge, const SizeStep& step, base::Instant now,
                           Question* question) {
  Request request = charge.request();
  request.operation = step.operation;
  Corrected corrected;
  const auto rules = Begin(request, question);
  if (!rules.ok()) return corrected;
  const Call call{.request = request,
                  .rules = **rules,
                  .question = decider_.may_wait() ? question : nullptr,
                  .now = now};
  Match(call);
  if (!AddStep(call, charge, step)) {
    End(call);
  } else if (DecidePart(call, 0, 1)) {
    AnswerCorrection(call, corrected);
  } else {
    corrected.waiting = true;
    Wait(call, Awaits::kBuckets);
  }
  return corrected;
}

Corrected Checker::ContinueCorrect(Question& question, base::Instant now) {
  Corrected corrected{.waiting = question.waiting()};
  if (!corrected.waiting) AnswerCorrection(TakeBack(question, now), corrected);
  return corrected;
}

void Checker::AnswerCorrection(const Call& call, Corrected& corrected) {
  corrected.settled = work_->batch.front().settled;
  End(call);
}

// Makes the step the only request of the batch. False if there is nothing to ask.
bool Checker::AddStep(const Call& call, const SizeCharge& charge, const SizeStep& step) {
  const bool undoes = step.operation == Operation::kUndo;
  if (undoes && !IsCounted(step.taken.mode)) return false;
  const Matched& matched = work_->matched.front();
  if (matched.rule == nullptr || matched.rule->unlimited) return false;
  const PublishedRule& published = call.rules.published[matched.rule->index];
  const bool in_shadow = charge.limit_index() >= rule::kLimitsPerRuleMax;
  const std::vector<PublishedLimit>& limits =
      in_shadow ? published.shadow
                : LimitsOf(published, call.request.domain, call.request.descriptors.front(),
                           matched.match);
  const size_t k = charge.limit_index() - (in_shadow ? rule::kLimitsPerRuleMax : 0);
  if (k >= limits.size()) return false;
  if (!limits[k].cost && charge.cost().of != rule::SizeCost::Of::kSent) return false;
  const LimitOfRequest chosen = LimitFor(limits[k], call.request.descriptors.front().given_limit);
  const algorithm::Limit& limit = chosen.limit->limit;
  // How much has come back by itself is known only if the limit has stayed the same.
  if (undoes && limit.spec() != charge.limit().spec()) return false;

  work_->sources.assign({{0, charge.limit_index(), &limit, &charge.cost()}});
  work_->batch.assign({{.request = {.key = charge.key(),
                                    .limit = chosen.limit,
                                    .history = chosen.history,
                                    .cost = step.cost,
                                    .operation = step.operation,
                                    .taken_at = step.taken_at},
                        .terms = TermsFor(limits[k], decider_.TermsOf(*matched.rule)),
                        .settled = step.taken}});
  return true;
}

}  // namespace headgate::limiter
