// A set of rules in force: its limits in the store's table, and their earlier versions.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/limiter/observer.h"
#include "headgate/rule/descriptor.h"
#include "headgate/rule/rule_set.h"
#include "headgate/store/limit_table.h"
#include "headgate/store/store.h"

namespace headgate::limiter {

// One limit of one rule. The history lets a bucket that was last used under an older version be
// carried over as of the moment of each change.
struct PublishedLimit {
  store::LimitHandle limit;
  std::optional<rule::SizeCost> cost{};
  std::shared_ptr<const rule::GivenLimits> given{};
  std::vector<store::LimitHandle> plans{};  // of `given`
  std::vector<store::LimitChange> history;  // oldest first
  std::vector<store::LimitHandle> pinned;   // the history's limits
};

// A part of a rule's keys that has had the same limits all the time: those of the rule, and while a
// roll-out holds for the part, those of the roll-out. So a bucket is carried over as of the moment
// at which its own limit changed.
struct PublishedPart {
  uint32_t end_ppm = kAllKeysPpm;      // of the places of its keys, in millionths
  std::vector<PublishedLimit> limits;  // as those of the rule or of its roll-out

  static constexpr uint32_t kAllKeysPpm = 1'000'000;
};

struct PublishedRule {
  std::vector<PublishedPart> parts;     // by end_ppm; the last one ends with all keys
  std::vector<PublishedLimit> shadow;   // as those of its roll-out, if that is in shadow
  Observers::Numbers series{};          // the observers' numbers for it
  Observers::Numbers rollout_series{};  // and for its roll-out
  Observers::Numbers permit_series{};   // and for its limit of concurrency
  // Its limit of concurrency in the form of a limit of requests, for reports: `max` per `ttl`.
  algorithm::Limit concurrency;
};

struct PublishedRules {
  std::shared_ptr<const rule::RuleSet> rules;
  std::vector<PublishedRule> published;  // by Rule::index
  bool limits_concurrency = false;       // any of them
};

// The part of the keys that this key of a rule belongs to.
const PublishedPart& PartOf(const PublishedRule& rule, std::string_view domain,
                            const rule::Descriptor& descriptor, const rule::Match& match);

// The limits of this key of a rule.
inline const std::vector<PublishedLimit>& LimitsOf(const PublishedRule& rule,
                                                   std::string_view domain,
                                                   const rule::Descriptor& descriptor,
                                                   const rule::Match& match) {
  const bool is_whole = rule.parts.size() == 1;
  return (is_whole ? rule.parts.front() : PartOf(rule, domain, descriptor, match)).limits;
}

// Prepares `rules` for decisions. `before` may be null.
absl::StatusOr<std::shared_ptr<const PublishedRules>> Publish(
    std::shared_ptr<const rule::RuleSet> rules, const PublishedRules* before,
    store::LimitTable& limits, const Observers& observers, base::Instant now);

}  // namespace headgate::limiter
