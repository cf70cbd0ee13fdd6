#include "headgate/limiter/published_rules.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "headgate/algorithm/decide.h"
#include "headgate/base/wide.h"
#include "headgate/limiter/bucket_key.h"

namespace headgate::limiter {
namespace {

// A bucket that missed more changes than this is carried over from the oldest one known.
constexpr size_t kHistoryMax = 16;
// If there are very many limits, each keeps a shorter history, at least one change: together they
// pin at most this many.
constexpr size_t kHistoriesMax = 65'536;
// Each change of a roll-out's percentage divides the keys further.
constexpr size_t kPartsMax = 16;

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

// Publishes the limits of one owner.
class LimitPublisher {
 public:
  LimitPublisher(store::LimitTable& table, store::LimitOwner owner, size_t history_max,
                 base::Instant now)
      : table_(table), owner_(owner), history_max_(history_max), now_(now) {}

  // `next` in the place of `earlier`, which may be empty. A limit has the history of the one with
  // the same number, because they have the same bucket.
  absl::StatusOr<std::vector<PublishedLimit>> Replace(std::span<const PublishedLimit> earlier,
                                                      std::span<const rule::RuleLimit> next) const {
    std::vector<PublishedLimit> out;
    for (size_t i = 0; i < next.size(); ++i) {
      if (i < earlier.size()) {
        HEADGATE_ASSIGN_OR_RETURN(PublishedLimit limit, Continue(earlier[i], next[i].limit, table_,
                                                                 owner_, history_max_, now_));
        out.push_back(std::move(limit));
      } else {
        HEADGATE_ASSIGN_OR_RETURN(store::LimitHandle limit,
                                  table_.Intern(next[i].limit, 0, owner_));
        out.push_back({.limit = std::move(limit), .history = {}, .pinned = {}});
      }
      out.back().cost = next[i].cost;
      out.back().given = next[i].given;
      out.back().plans.clear();
      if (next[i].given == nullptr) continue;
      for (const rule::GivenLimits::Plan& plan : next[i].given->plans) {
        HEADGATE_ASSIGN_OR_RETURN(store::LimitHandle limit, table_.Intern(plan.limit, 0, owner_));
        out.back().plans.push_back(std::move(limit));
      }
    }
    return out;
  }

 private:
  store::LimitTable& table_;
  const store::LimitOwner owner_;
  const size_t history_max_;
  const base::Instant now_;
};

// The part of the keys that a roll-out holds for; 0 if it is in shadow, or there is none.
uint32_t RolledOutPpm(const rule::Rule& rule) {
  return rule.rollout == nullptr ? 0 : rule.rollout->keys_ppm;
}

// The ends of the parts that have had the same limits so far, and have the same ones now.
std::vector<uint32_t> EndsOf(const rule::Rule& rule, std::span<const PublishedPart> earlier) {
  std::vector<uint32_t> ends{PublishedPart::kAllKeysPpm};
  for (const PublishedPart& part : earlier) ends.push_back(part.end_ppm);
  if (const uint32_t ppm = RolledOutPpm(rule); ppm > 0) ends.push_back(ppm);
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return ends;
}

bool HaveOneHistory(const PublishedPart& a, const PublishedPart& b) {
  return std::equal(a.limits.begin(), a.limits.end(), b.limits.begin(), b.limits.end(),
                    [](const PublishedLimit& one, const PublishedLimit& other) {
                      return one.limit.get() == other.limit.get() && one.cost == other.cost &&
                             AreAlike(one.given, other.given) && one.history == other.history;
                    });
}

base::Instant LastChangeOf(const PublishedPart& part) {
  base::Instant last{};
  for (const PublishedLimit& limit : part.limits)
    if (!limit.history.empty()) last = std::max(last, limit.history.back().at);
  return last;
}

// Joins neighbours that do not differ; if there are too many parts, also those whose last
// difference is the oldest, which then have the history of the first one. Two parts with different
// limits now are never joined.
void JoinParts(std::vector<PublishedPart>& parts, uint32_t rolled_out_ppm) {
  for (size_t i = 0; i + 1 < parts.size();) {
    if (HaveOneHistory(parts[i], parts[i + 1])) {
      parts[i].end_ppm = parts[i + 1].end_ppm;
      parts.erase(parts.begin() + static_cast<ptrdiff_t>(i) + 1);
    } else {
      ++i;
    }
  }
  while (parts.size() > kPartsMax) {
    size_t oldest = parts.size();
    base::Instant oldest_at{};
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      if (parts[i].end_ppm == rolled_out_ppm) continue;
      const base::Instant at = std::max(LastChangeOf(parts[i]), LastChangeOf(parts[i + 1]));
      if (oldest < parts.size() && at >= oldest_at) continue;
      oldest = i;
      oldest_at = at;
    }
    parts[oldest].end_ppm = parts[oldest + 1].end_ppm;
    parts.erase(parts.begin() + static_cast<ptrdiff_t>(oldest) + 1);
  }
}

absl::StatusOr<std::vector<PublishedPart>> PublishParts(const rule::Rule& rule,
                                                        std::span<const PublishedPart> earlier,
                                                        const LimitPublisher& publisher) {
  std::vector<PublishedPart> parts;
  for (const uint32_t end : EndsOf(rule, earlier)) {
    const auto was = std::find_if(earlier.begin(), earlier.end(),
                                  [&](const PublishedPart& part) { return part.end_ppm >= end; });
    const bool rolled_out = end <= RolledOutPpm(rule);
    HEADGATE_ASSIGN_OR_RETURN(
        std::vector<PublishedLimit> limits,
        publisher.Replace(was == earlier.end() ? std::span<const PublishedLimit>() : was->limits,
                          rolled_out ? rule.rollout->limits : rule.limits));
    parts.push_back({.end_ppm = end, .limits = std::move(limits)});
  }
  JoinParts(parts, RolledOutPpm(rule));
  return parts;
}

size_t LimitCount(const rule::RuleSet& rules, const PublishedRules* before) {
  size_t count = 1;
  for (const rule::Rule& rule : rules.rules()) count += rule.limits.size();
  if (before == nullptr) return count;
  for (const PublishedRule& rule : before->published)
    for (size_t i = 1; i < rule.parts.size(); ++i) count += rule.parts[i].limits.size();
  return count;
}

}  // namespace

// Which part a key belongs to depends on the key alone, so it is the same on every instance and
// after a restart; it needs no secret.
const PublishedPart& PartOf(const PublishedRule& rule, std::string_view domain,
                            const rule::Descriptor& descriptor, const rule::Match& match) {
  const uint64_t hash =
      RuleBucketKey(base::HashSecret{}, domain, descriptor.entries, match, 0).high;
  const uint64_t place_ppm = base::MulHigh(hash, PublishedPart::kAllKeysPpm);
  return *std::find_if(rule.parts.begin(), rule.parts.end(),
                       [&](const PublishedPart& part) { return place_ppm < part.end_ppm; });
}

absl::StatusOr<std::shared_ptr<const PublishedRules>> Publish(
    std::shared_ptr<const rule::RuleSet> rules, const PublishedRules* before,
    store::LimitTable& limits, const Observers& observers, base::Instant now) {
  const ByIdentity old = IndexByIdentity(before);
  auto next = std::make_shared<PublishedRules>();
  next->published.resize(rules->rules().size());
  const size_t history_max =
      std::clamp<size_t>(kHistoriesMax / LimitCount(*rules, before), 1, kHistoryMax);
  const PublishedRule none;
  for (const rule::Rule& rule : rules->rules()) {
    PublishedRule& published = next->published[rule.index];
    const auto found = old.find(rule.identity);
    const PublishedRule& was = found != old.end() ? before->published[found->second] : none;
    const LimitPublisher publisher(limits, store::LimitOwner::Rule(rule.identity), history_max,
                                   now);
    HEADGATE_ASSIGN_OR_RETURN(published.parts, PublishParts(rule, was.parts, publisher));
    if (rule.concurrency) {
      next->limits_concurrency = true;
      HEADGATE_ASSIGN_OR_RETURN(
          published.concurrency,
          algorithm::Limit::Make({.algorithm = algorithm::Algorithm::kFixedWindow,
                                  .requests = rule.concurrency->max,
                                  .period = rule.concurrency->ttl}));
    }
    if (rule.rollout == nullptr || !rule.rollout->shadow()) continue;
    HEADGATE_ASSIGN_OR_RETURN(published.shadow,
                              publisher.Replace(was.shadow, rule.rollout->limits));
  }
  // Tells the observers last, when nothing can fail any more.
  for (const rule::Rule& rule : rules->rules()) {
    PublishedRule& published = next->published[rule.index];
    published.series = observers.NumberEach([&](Observer& one) { return one.OnRule(rule); });
    if (rule.concurrency) {
      published.permit_series =
          observers.NumberEach([&](Observer& one) { return one.OnConcurrency(rule); });
    }
    if (rule.rollout != nullptr) {
      published.rollout_series =
          observers.NumberEach([&](Observer& one) { return one.OnRollout(rule); });
    }
  }
  next->rules = std::move(rules);
  return next;
}

}  // namespace headgate::limiter
