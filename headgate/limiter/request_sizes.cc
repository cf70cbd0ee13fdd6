#include "headgate/limiter/request_sizes.h"

#include <cstddef>
#include <memory>
#include <vector>

#include "headgate/limiter/work.h"

namespace headgate::limiter {
namespace {

// The cost by size of a request of the batch; null if its cost is known.
const rule::SizeCost* SizeOf(const Task& task, size_t index) {
  static const rule::SizeCost kSent{.of = rule::SizeCost::Of::kSent};
  const BucketSource& source = task.work.buckets.source(index);
  if (source.size != nullptr || source.descriptor == kOfId) return source.size;
  // A turn in a queue is not given back.
  const bool can_return = task.work.has_waited && task.request.may_stay_unsent &&
                          algorithm::TakesRefunds(source.limit->algorithm());
  return can_return ? &kSent : nullptr;
}

}  // namespace

algorithm::Cost CostOf(const Request& request, const rule::Descriptor& descriptor,
                       const std::optional<rule::SizeCost>& size) {
  if (descriptor.cost) return *descriptor.cost;
  if (request.operation == Operation::kPeek && !request.peeks_as_take) return 0;
  if (!size) return 1;
  const bool known = size->of == rule::SizeCost::Of::kRequestBytes && request.request_bytes;
  return known ? size->UnitsOf(*request.request_bytes) : size->reserve();
}

const rule::SizeCost* SizeOf(const rule::Descriptor& descriptor, const PublishedLimit& limit) {
  const bool is_later =
      limit.cost && (!descriptor.cost || limit.cost->of == rule::SizeCost::Of::kCountedAnswers);
  return is_later ? &*limit.cost : nullptr;
}

void TellSizes(const Task& task, Response& response) {
  const RequestBuckets& buckets = task.work.buckets;
  if (task.request.operation != Operation::kTake || response.repeated) return;
  for (size_t first = 0, end = 0; first < buckets.size(); first = end) {
    end = first + 1;
    while (end < buckets.size() && buckets.entry(end).request.joined != store::Joined::kNo) ++end;
    bool taken = true;
    bool sized = false;
    for (size_t i = first; i < end; ++i) {
      taken = taken && buckets.entry(i).settled.decision.allowed;
      sized = sized || SizeOf(task, i) != nullptr;
    }
    if (!taken || !sized) continue;
    for (size_t i = first; i < end; ++i) {
      const BucketSource& source = buckets.source(i);
      const BatchEntry& entry = buckets.entry(i);
      // Otherwise it was peeked at only, given back, or let through without the store.
      const bool counted =
          entry.request.operation == Operation::kTake && IsCounted(entry.settled.mode);
      const rule::SizeCost* const size = SizeOf(task, i);
      if (size == nullptr || !counted) continue;
      response.sized.push_back({.descriptor = source.descriptor,
                                .limit_index = source.limit_index,
                                .key = entry.request.key,
                                .cost = *size,
                                .limit = *source.limit,
                                .taken = entry.request.cost,
                                .settled = entry.settled});
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

bool AddStep(const Task& task, const SizeCharge& charge, const SizeStep& step) {
  const bool undoes = step.operation == Operation::kUndo;
  if (undoes && !IsCounted(step.taken.mode)) return false;
  const Matched& matched = task.work.matches[0];
  if (matched.rule == nullptr || matched.rule->unlimited) return false;
  const PublishedRule& published = task.rules.published[matched.rule->index];
  const bool in_shadow = charge.limit_index() >= rule::kLimitsPerRuleMax;
  const std::vector<PublishedLimit>& limits =
      in_shadow ? published.shadow
                : LimitsOf(published, task.request.domain, task.request.descriptors.front(),
                           matched.match);
  const size_t k = charge.limit_index() - (in_shadow ? rule::kLimitsPerRuleMax : 0);
  if (k >= limits.size()) return false;
  if (!limits[k].cost && charge.cost().of != rule::SizeCost::Of::kSent) return false;
  const ChosenLimit chosen = task.work.buckets.Choose(task, 0, limits[k]);
  const algorithm::Limit& limit = chosen.limit->limit;
  // How much has come back by itself is known only if the limit has stayed the same.
  if (undoes && limit.spec() != charge.limit().spec()) return false;

  task.work.buckets.AddOnly(
      {.request = {.key = charge.key(),
                   .limit = chosen.limit,
                   .history = chosen.history,
                   .cost = step.cost,
                   .operation = step.operation,
                   .taken_at = step.taken_at},
       .terms = TermsFor(limits[k], task.means.decider.TermsOf(*matched.rule)),
       .settled = step.taken},
      {0, charge.limit_index(), &limit, &charge.cost()});
  return true;
}

}  // namespace headgate::limiter
