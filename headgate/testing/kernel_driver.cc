#include "headgate/testing/kernel_driver.h"

#include "headgate/algorithm/decide.h"

namespace headgate::testing {

absl::Status KernelDriver::SetRules(std::span<const ScenarioRule> rules, base::Instant now) {
  for (const ScenarioRule& rule : rules) {
    RuleBuckets& held = rules_[rule.name];
    for (auto& [key, bucket] : held.buckets) {
      algorithm::Change(held.limit, rule.limit, bucket.state, bucket.hits, bucket.remembered_until, now);
    }
    held.limit = rule.limit;
  }
  return absl::OkStatus();
}

absl::StatusOr<algorithm::Decision> KernelDriver::Answer(const Ask& ask, base::Instant now) {
  RuleBuckets& rule = rules_[ask.rule];
  Bucket& bucket = rule.buckets[ask.key];
  switch (ask.operation) {
    case Operation::kRequest:
      return algorithm::Decide(rule.limit, bucket.state, bucket.hits, ask.cost, now);
    case Operation::kRefund:
      return algorithm::Refund(rule.limit, bucket.state, bucket.hits, ask.cost, now);
    case Operation::kReset:
      algorithm::Reset(rule.limit, bucket.state, bucket.hits);
      bucket.remembered_until = {};
      return algorithm::Decide(rule.limit, bucket.state, bucket.hits, 0, now);
  }
  __builtin_unreachable();
}

}  // namespace headgate::testing
