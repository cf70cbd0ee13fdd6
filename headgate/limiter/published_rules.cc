#include "headgate/limiter/published_rules.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "headgate/algorithm/decide.h"

namespace headgate::limiter {
namespace {

// A bucket that missed more changes than this is carried over from the oldest one known.
constexpr size_t kHistoryMax = 16;
// If there are very many limits, each keeps a shorter history, at least one change: together they
// pin at most this many.
constexpr size_t kHistoriesMax = 65'536;

using ByIdentity = absl::flat_hash_map<absl::string_view, uint32_t>;

ByIdentity IndexByIdentity(const PublishedRules* set) {
  ByIdentity index;
  if (set == nullptr) return index;
  for (const rule::Rule& rule : set->rules->rules()) index.emplace(rule.identity, rule.index);
  return index;
}

// The history after `before` was replaced by `next` at `now`.
absl::StatusOr<PublishedLimit> Continue(const PublishedLimit& before, const algorithm::Limit& next,
                                        store::LimitTable& limits, store::LimitOwner owner,
                                        size_t history_max, base::Instant now) {
  if (before.limit->limit.spec() == next.spec()) return before;
  PublishedLimit limit = before;
  limit.history.push_back({before.limit.get(), now});
  limit.pinned.push_back(before.limit);
  uint32_t version = 0;
  for (const store::LimitChange& change : limit.history) {
    if (change.before->limit.spec() == next.spec()) version = change.before->version + 1;
  }
  HEADGATE_ASSIGN_OR_RETURN(limit.limit, limits.Intern(next, version, owner));
  while (limit.history.size() > history_max) {
    limit.history.erase(limit.history.begin());
    limit.pinned.erase(limit.pinned.begin());
  }
  for (const store::LimitChange& change : limit.history) {
    change.before->KeepBucketsUntil(now + algorithm::TimeToFull(next));
  }
  return limit;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const PublishedRules>> Publish(
    std::shared_ptr<const rule::RuleSet> rules, const PublishedRules* before,
    store::LimitTable& limits, Observer* observer, base::Instant now) {
  const ByIdentity old = IndexByIdentity(before);
  auto next = std::make_shared<PublishedRules>();
  next->published.resize(rules->rules().size());
  size_t limit_count = 1;
  for (const rule::Rule& rule : rules->rules()) limit_count += rule.limits.size();
  const size_t history_max = std::clamp<size_t>(kHistoriesMax / limit_count, 1, kHistoryMax);
  for (const rule::Rule& rule : rules->rules()) {
    PublishedRule& published = next->published[rule.index];
    const auto found = old.find(rule.identity);
    const PublishedRule* was = found != old.end() ? &before->published[found->second] : nullptr;
    const store::LimitOwner owner = store::LimitOwner::Rule(rule.identity);
    for (size_t i = 0; i < rule.limits.size(); ++i) {
      if (was != nullptr && i < was->limits.size()) {
        HEADGATE_ASSIGN_OR_RETURN(
            PublishedLimit limit,
            Continue(was->limits[i], rule.limits[i].limit, limits, owner, history_max, now));
        published.limits.push_back(std::move(limit));
      } else {
        HEADGATE_ASSIGN_OR_RETURN(store::LimitHandle limit,
                                  limits.Intern(rule.limits[i].limit, 0, owner));
        published.limits.push_back({.limit = std::move(limit), .history = {}, .pinned = {}});
      }
    }
  }
  // Tells the observer last, when nothing can fail any more.
  if (observer != nullptr) {
    for (const rule::Rule& rule : rules->rules())
      next->published[rule.index].series = observer->OnRule(rule);
  }
  next->rules = std::move(rules);
  return next;
}

}  // namespace headgate::limiter
