#include "headgate/limiter/published_rules.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace headgate::limiter {
namespace {

// A bucket that slept through more changes than this is carried over from the oldest one known.
constexpr size_t kHistoryMax = 16;

using ByIdentity = absl::flat_hash_map<absl::string_view, uint32_t>;

ByIdentity IndexByIdentity(const PublishedRules* set) {
  ByIdentity index;
  if (set == nullptr) return index;
  for (const rule::Rule& rule : set->rules->rules()) index.emplace(rule.identity, rule.index);
  return index;
}

// What comes after `before`, replaced at `now`.
void Continue(PublishedLimit& limit, const PublishedLimit& before, base::Instant now) {
  limit.history = before.history;
  limit.pinned = before.pinned;
  if (before.limit.get() == limit.limit.get()) return;
  limit.history.push_back({before.limit.get(), now});
  limit.pinned.push_back(before.limit);
  if (limit.history.size() > kHistoryMax) {
    limit.history.erase(limit.history.begin());
    limit.pinned.erase(limit.pinned.begin());
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const PublishedRules>> Publish(std::shared_ptr<const rule::RuleSet> rules,
                                                              const PublishedRules* before, store::LimitTable& limits,
                                                              Observer* observer, base::Instant now) {
  const ByIdentity old = IndexByIdentity(before);
  auto next = std::make_shared<PublishedRules>();
  next->published.resize(rules->rules().size());
  for (const rule::Rule& rule : rules->rules()) {
    PublishedRule& published = next->published[rule.index];
    const auto found = old.find(rule.identity);
    const PublishedRule* was = found != old.end() ? &before->published[found->second] : nullptr;
    for (size_t i = 0; i < rule.limits.size(); ++i) {
      PublishedLimit limit;
      HEADGATE_ASSIGN_OR_RETURN(limit.limit, limits.Intern(rule.limits[i].limit));
      if (was != nullptr && i < was->limits.size()) Continue(limit, was->limits[i], now);
      published.limits.push_back(std::move(limit));
    }
  }
  // Only now, when nothing can fail any more, does the observer hear of it.
  if (observer != nullptr) {
    for (const rule::Rule& rule : rules->rules()) next->published[rule.index].series = observer->OnRule(rule);
  }
  next->rules = std::move(rules);
  return next;
}

}  // namespace headgate::limiter
