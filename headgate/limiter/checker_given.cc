// The part of a Checker that is about limits that requests bring for their rules.
#include <algorithm>
#include <optional>
#include <utility>

#include "headgate/limiter/checker.h"
#include "headgate/limiter/work.h"
#include "headgate/rule/given_limit.h"

namespace headgate::limiter {

Checker::LimitOfRequest Checker::GivenLimitFor(const PublishedLimit& limit,
                                               std::string_view given) {
  LimitOfRequest chosen{.limit = limit.limit.get(), .history = limit.history};
  const rule::GivenChoice choice = rule::ChooseGiven(*limit.given, given);
  const store::LimitEntry* found = nullptr;
  if (choice.given == rule::Given::kPlan) {
    found = limit.plans[choice.plan].get();
  } else if (choice.given != rule::Given::kUnknown) {
    const auto number = NumberLimit(limit, choice.number);
    // Without room for one more limit, the rule's own counts.
    if (number.ok()) found = work_->given.emplace_back(*number).get();
  }
  if (found == nullptr || found->limit.spec() == chosen.limit->limit.spec()) return chosen;
  chosen.limit = found;
  chosen.history = {};
  return chosen;
}

absl::StatusOr<store::LimitHandle> Checker::NumberLimit(const PublishedLimit& limit,
                                                        uint32_t number) {
  auto& cache = caches_->numbers;
  const std::pair id{limit.limit->serial, number};
  if (const auto found = cache.find(id); found != cache.end()) return found->second;
  HEADGATE_ASSIGN_OR_RETURN(const algorithm::Limit made, algorithm::Limit::Make(rule::WithRequests(
                                                             limit.limit->limit.spec(), number)));
  HEADGATE_ASSIGN_OR_RETURN(store::LimitHandle handle,
                            limiter_.store_.limits().Intern(made, 0, limit.limit->owner->owner));
  if (cache.size() >= kOverridesCachedMax) cache.clear();
  cache.emplace(id, handle);
  return handle;
}

void Checker::ObserveGiven(const Call& call, size_t descriptor) const {
  const std::string_view given = call.request.descriptors[descriptor].given_limit;
  const rule::Rule* const rule = work_->matched[descriptor].rule;
  if (given.empty() || rule == nullptr) return;
  // One text for all limits of the rule: it is understood if one of them does.
  std::optional<rule::Given> best;
  for (const rule::RuleLimit& limit : rule->limits) {
    if (limit.given == nullptr) continue;
    const rule::Given one = rule::ChooseGiven(*limit.given, given).given;
    best = best ? std::min(*best, one) : one;
  }
  if (best) limiter_.observer_->OnGivenLimit(worker_, *best);
}

}  // namespace headgate::limiter
