#include "headgate/limiter/shadow_rollouts.h"

#include <cstddef>
#include <vector>

#include "headgate/limiter/work.h"

namespace headgate::limiter {

void AddShadowRollout(const Task& task, uint32_t descriptor, RequestBuckets& buckets) {
  const Operation operation = task.request.operation;
  if (operation == Operation::kPeek) return;
  const std::vector<PublishedLimit>& limits =
      task.rules.published[task.work.matches.RuleOf(descriptor)->index].shadow;
  bool first = true;
  for (uint32_t k = 0; k < limits.size(); ++k) {
    const ChosenLimit chosen = buckets.Choose(task, descriptor, limits[k]);
    if (GivesBack(operation) && !algorithm::TakesRefunds(chosen.limit->limit.algorithm())) continue;
    const auto index = static_cast<uint32_t>(rule::kLimitsPerRuleMax + k);
    buckets.AddLimit(task, {.descriptor = descriptor, .limit_index = index}, limits[k], chosen,
                     !first);
    first = false;
  }
}

void ObserveShadowRollouts(const Task& task, const Response& response) {
  const RequestBuckets& buckets = task.work.buckets;
  for (size_t i = 0; i < buckets.size();) {
    if (!buckets.source(i).of_shadow_rollout()) {
      ++i;
      continue;
    }
    const uint32_t descriptor = buckets.source(i).descriptor;
    bool allows = true;
    bool known = true;
    for (; i < buckets.size() && buckets.source(i).descriptor == descriptor &&
           buckets.source(i).of_shadow_rollout();
         ++i) {
      const Settled& settled = buckets.entry(i).settled;
      allows = allows && settled.decision.allowed;
      known = known && !IsDegraded(settled.mode);
    }
    const DescriptorAnswer& answer = response.descriptors[descriptor];
    if (!known || IsDegraded(answer.mode)) continue;
    const bool rule_allows = answer.limit == nullptr || answer.decision.allowed;
    task.means.observers.TellEach(
        task.rules.published[answer.rule->index].rollout_series,
        [&](Observer& one, uint32_t number) {
          one.OnShadowRollout(
              task.means.worker,
              {.series = number, .rule_allows = rule_allows, .rollout_allows = allows});
        });
  }
}

}  // namespace headgate::limiter
