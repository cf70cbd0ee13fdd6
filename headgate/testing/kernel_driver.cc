#include "headgate/testing/kernel_driver.h"

#include <algorithm>

#include "headgate/algorithm/decide.h"

namespace headgate::testing {
namespace {

using algorithm::Decision;

bool Tighter(const Decision& a, const Decision& b) {
  if (a.allowed != b.allowed) return !a.allowed;
  if (!a.allowed) return a.retry_after > b.retry_after;
  if (a.remaining != b.remaining) return a.remaining < b.remaining;
  return a.reset_after > b.reset_after;
}

}  // namespace

absl::Status KernelDriver::SetRules(std::span<const ScenarioRule> rules, base::Instant now) {
  for (const ScenarioRule& rule : rules) {
    RuleBuckets& held = rules_[rule.name];
    for (auto& [key, buckets] : held.buckets) {
      buckets.resize(rule.limits.size());
      for (size_t i = 0; i < std::min(held.limits.size(), rule.limits.size()); ++i) {
        Bucket& bucket = buckets[i];
        algorithm::Change(held.limits[i], rule.limits[i], bucket.state, bucket.hits,
                          bucket.remembered_until, now);
      }
    }
    held.limits = rule.limits;
  }
  return absl::OkStatus();
}

absl::StatusOr<Decision> KernelDriver::Answer(const Ask& ask, base::Instant now) {
  RuleBuckets& rule = rules_[ask.rule];
  std::vector<Bucket>& buckets = rule.buckets[ask.key];
  buckets.resize(rule.limits.size());
  if (ask.operation == Ask::Operation::kRequest) return Request(rule, buckets, ask.cost, now);
  for (size_t i = 0; i < buckets.size(); ++i) {
    if (ask.operation == Ask::Operation::kReset) {
      algorithm::Reset(rule.limits[i], buckets[i].state, buckets[i].hits);
      buckets[i].remembered_until = {};
    } else {
      HEADGATE_RETURN_IF_ERROR(
          algorithm::Refund(rule.limits[i], buckets[i].state, buckets[i].hits, ask.cost, now)
              .status());
    }
  }
  return Request(rule, buckets, 0, now);
}

// All limits must allow. If one denies, the request is undone under the others, except under limits
// that count denied requests.
Decision KernelDriver::Request(const RuleBuckets& rule, std::vector<Bucket>& buckets,
                               algorithm::Cost cost, base::Instant now) {
  const std::vector<Bucket> before = buckets;
  std::vector<Decision> decisions;
  bool denied = false;
  for (size_t i = 0; i < buckets.size(); ++i) {
    decisions.push_back(
        algorithm::Decide(rule.limits[i], buckets[i].state, buckets[i].hits, cost, now));
    denied = denied || !decisions[i].allowed;
  }
  for (size_t i = 0; denied && buckets.size() > 1 && i < buckets.size(); ++i) {
    const bool counts = rule.limits[i].spec().count_denied;
    if (!counts) buckets[i] = before[i];
    if (!decisions[i].allowed || (counts && cost <= decisions[i].remaining)) continue;
    Bucket copy = buckets[i];
    decisions[i] = algorithm::Decide(rule.limits[i], copy.state, copy.hits, counts ? cost : 0, now);
  }
  Decision answer = *std::min_element(decisions.begin(), decisions.end(), Tighter);
  for (const Decision& decision : decisions) answer.wait = std::max(answer.wait, decision.wait);
  return answer;
}

}  // namespace headgate::testing
