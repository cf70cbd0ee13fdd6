#include "headgate/rule/builder.h"

#include <fmt/format.h>

#include "headgate/rule/quote.h"
#include "headgate/rule/rule_names.h"
#include "headgate/rule/rule_tree.h"

namespace headgate::rule {

absl::StatusOr<std::shared_ptr<const RuleSet>> BuildRules(std::span<const PlainRule> rules) {
  RuleTreeBuilder builder;
  for (const PlainRule& plain : rules) {
    if (plain.domain.empty() || plain.key.empty()) {
      return absl::InvalidArgumentError("a rule needs a domain and a key");
    }
    if (plain.domain.size() > kNodeTextMax || plain.key.size() > kNodeTextMax) {
      return absl::InvalidArgumentError(
          fmt::format("a domain or key is longer than {} bytes", kNodeTextMax));
    }
    if (plain.limits.empty() || plain.limits.size() > kLimitsPerRuleMax) {
      return absl::InvalidArgumentError(fmt::format("rule {} needs 1 to {} limits, not {}",
                                                    Quote(plain.key), kLimitsPerRuleMax,
                                                    plain.limits.size()));
    }
    const auto [node, added] = builder.AddChild(builder.Domain(plain.domain), plain.key, {});
    if (!added) {
      return absl::InvalidArgumentError(
          fmt::format("rule {} occurs twice in domain {}", Quote(plain.key), Quote(plain.domain)));
    }
    Rule rule;
    rule.domain = plain.domain;
    rule.name = plain.key;
    rule.path = plain.key;
    rule.identity = ChildIdentity(DomainIdentity(plain.domain), plain.key, {});
    for (const algorithm::Limit& limit : plain.limits) {
      rule.limits.push_back({.limit = limit, .unit = UnitOf(limit.spec())});
    }
    builder.SetRule(node, std::move(rule));
  }
  return std::move(builder).Build();
}

}  // namespace headgate::rule
