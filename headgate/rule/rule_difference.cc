#include "headgate/rule/rule_difference.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace headgate::rule {
namespace {

using RulesByIdentity =
    absl::flat_hash_map<std::pair<std::string_view, std::string_view>, const Rule*>;

bool AreAlike(const std::vector<RuleLimit>& a, const std::vector<RuleLimit>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const RuleLimit& one, const RuleLimit& other) {
                      return one.limit.spec() == other.limit.spec() && one.unit == other.unit &&
                             one.cost == other.cost && AreAlike(one.given, other.given);
                    });
}

bool AreAlike(const Rollout* a, const Rollout* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->keys_ppm == b->keys_ppm && AreAlike(a->limits, b->limits);
}

bool AreAlike(const Refusal* a, const Refusal* b) {
  return a == nullptr || b == nullptr ? a == b : *a == *b;
}

RulesByIdentity ByIdentity(const RuleSet& set) {
  RulesByIdentity rules;
  for (const Rule& rule : set.rules()) rules[{rule.domain, rule.identity}] = &rule;
  return rules;
}

}  // namespace

bool AreAlike(const Rule& a, const Rule& b) {
  return AreAlike(a.limits, b.limits) && a.concurrency == b.concurrency &&
         OtherFieldsThatDiffer(a, b).empty();
}

std::vector<std::string_view> OtherFieldsThatDiffer(const Rule& a, const Rule& b) {
  const std::pair<std::string_view, bool> fields[] = {
      {"name", a.name == b.name},
      {"path", a.path == b.path},
      {"rollout", AreAlike(a.rollout.get(), b.rollout.get())},
      {"unlimited", a.unlimited == b.unlimited},
      {"all_or_nothing", a.all_or_nothing == b.all_or_nothing},
      {"shadow_mode", a.shadow_mode == b.shadow_mode},
      {"quota_mode", a.quota_mode == b.quota_mode},
      {"detailed_metric", a.detailed_metric == b.detailed_metric},
      {"value_to_metric", a.value_to_metric == b.value_to_metric},
      {"replaces", a.replaces == b.replaces},
      {"metadata", a.metadata_json == b.metadata_json},
      {"rate_limit_fields", a.rate_limit_fields == b.rate_limit_fields},
      {"quota_unit", a.quota_unit == b.quota_unit},
      {"refusal", AreAlike(a.refusal.get(), b.refusal.get())},
      {"sharing", a.sharing == b.sharing},
      {"on_store_failure", a.on_store_failure == b.on_store_failure},
      {"fallback_share", a.fallback_share_ppm == b.fallback_share_ppm}};
  std::vector<std::string_view> differ;
  for (const auto& [name, same] : fields) {
    if (!same) differ.push_back(name);
  }
  return differ;
}

std::vector<RuleDifference> DifferencesOf(const RuleSet& before, const RuleSet& after) {
  std::vector<RuleDifference> differences;
  const RulesByIdentity old_rules = ByIdentity(before);
  const RulesByIdentity new_rules = ByIdentity(after);
  for (const Rule& rule : after.rules()) {
    const auto found = old_rules.find({rule.domain, rule.identity});
    if (found == old_rules.end()) {
      differences.push_back({.after = rule});
    } else if (!AreAlike(*found->second, rule)) {
      differences.push_back({.before = *found->second, .after = rule});
    }
  }
  for (const Rule& rule : before.rules()) {
    if (!new_rules.contains({rule.domain, rule.identity})) differences.push_back({.before = rule});
  }
  return differences;
}

}  // namespace headgate::rule
