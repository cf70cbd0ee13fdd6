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
    const auto publish = [&](const std::vector<rule::RuleLimit>& own,
                             const std::vector<PublishedLimit>* earlier,
                             std::vector<PublishedLimit>& out) -> absl::Status {
      for (size_t i = 0; i < own.size(); ++i) {
        if (earlier != nullptr && i < earlier->size()) {
          HEADGATE_ASSIGN_OR_RETURN(
              PublishedLimit limit,
              Continue((*earlier)[i], own[i].limit, limits, owner, history_max, now));
          out.push_back(std::move(limit));
        } else {
          HEADGATE_ASSIGN_OR_RETURN(store::LimitHandle limit,
                                    limits.Intern(own[i].limit, 0, owner));
          out.push_back({.limit = std::move(limit), .history = {}, .pinned = {}});
        }
      }
      return absl::OkStatus();
    };
    HEADGATE_RETURN_IF_ERROR(
        publish(rule.limits, was == nullptr ? nullptr : &was->limits, published.limits));
    if (rule.rollout == nullptr) continue;
    HEADGATE_RETURN_IF_ERROR(
        publish(rule.rollout->limits, was == nullptr ? nullptr : &was->rollout, published.rollout));
  }
  // Tells the observer last, when nothing can fail any more.
  if (observer != nullptr) {
    for (const rule::Rule& rule : rules->rules()) {
      PublishedRule& published = next->published[rule.index];
      published.series = observer->OnRule(rule);
      if (rule.rollout != nullptr) published.rollout_series = observer->OnRollout(rule);
    }
  }
  next->rules = std::move(rules);
  return next;
}

}  // namespace headgate::limiter
