#include "headgate/front/api/reserved_buckets.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "headgate/algorithm/still_taken.h"
#include "headgate/base/hash.h"
#include "headgate/limiter/bucket_key.h"
#include "headgate/wire/digest.h"

namespace headgate::front::api {
namespace {

using limiter::DescriptorAnswer;

// The same on every instance and after a restart. It needs no secret: only a sealed mark counts.
constexpr base::HashSecret kNoSecret{};

template <typename Number>
void AddNumber(Number number, base::KeyHasher& hasher) {
  hasher.Add({static_cast<const char*>(static_cast<const void*>(&number)), sizeof number});
}

uint64_t Finish(base::KeyHasher& hasher) {
  return std::max<uint64_t>(hasher.Finish().low, 1);  // 0 stands for no limit
}

// The part of a limit that decides how a take comes back by itself. Windows begin at the same times
// for every number of requests; how much a bucket lacks depends on its rate and its burst.
algorithm::LimitSpec ReturnsOf(const algorithm::Limit& limit) {
  algorithm::LimitSpec spec = limit.spec();
  spec.count_denied = false;
  spec.burst = std::nullopt;
  if (!algorithm::IsBucket(spec.algorithm)) {
    spec.requests = 0;
  } else if (spec.algorithm != algorithm::Algorithm::kLeakyBucketQueue) {
    spec.algorithm = algorithm::Algorithm::kTokenBucket;
    spec.burst = limit.capacity();
  }
  return spec;
}

uint64_t MarkOf(const base::Hash128& bucket, const rule::Rule* rule,
                std::span<const limiter::PublishedLimit> limits) {
  base::KeyHasher hasher(kNoSecret, base::KeyKind::kRaw);
  AddNumber(bucket.low, hasher);
  AddNumber(bucket.high, hasher);
  if (rule != nullptr) AddNumber(rule->shadow_mode, hasher);
  // A limit keeps its bucket if its position in the rule stays the same.
  for (const limiter::PublishedLimit& limit : limits) {
    const algorithm::LimitSpec spec = ReturnsOf(limit.limit->limit);
    AddNumber(spec.algorithm, hasher);
    AddNumber(spec.align, hasher);
    if (!spec.zone.is_utc()) hasher.Add(spec.zone.name());
    AddNumber(int64_t{spec.period.count()}, hasher);
    AddNumber(spec.requests, hasher);
    AddNumber(spec.burst.value_or(0), hasher);
  }
  return Finish(hasher);
}

// Whether the limit was replaced since `time` by a limit that gives used units back in another way.
bool HasChangedSince(const limiter::PublishedLimit& limit, base::Instant time) {
  const algorithm::LimitSpec now = ReturnsOf(limit.limit->limit);
  return std::any_of(limit.history.begin(), limit.history.end(),
                     [&](const store::LimitChange& change) {
                       return change.at >= time && ReturnsOf(change.before->limit) != now;
                     });
}

// An upper bound on the amount that the buckets lack, from the decision of the tightest bucket.
// There is no bound if that bucket is empty, because a bucket whose limit was lowered may lack more
// than its capacity, and none for a lease, which does not know how much other instances have taken.
uint64_t LackingAtMost(const DescriptorAnswer& answer) {
  const algorithm::Decision& decision = answer.decision;
  if (decision.remaining == 0 || answer.mode == limiter::Mode::kLeased)
    return std::numeric_limits<uint64_t>::max();
  return decision.limit - std::min(decision.limit, decision.remaining);
}

}  // namespace

std::vector<FoundBuckets> FindBuckets(const limiter::PublishedRules* rules,
                                      const limiter::Request& request) {
  std::vector<FoundBuckets> found(request.descriptors.size());
  if (rules == nullptr) return found;
  rule::Match match;
  for (size_t i = 0; i < found.size(); ++i) {
    const rule::Descriptor& descriptor = request.descriptors[i];
    if (!rules->rules->Find(request.domain, descriptor.entries, match)) continue;
    if (descriptor.override_limit) {
      found[i].mark =
          MarkOf(limiter::OverrideBucketKey(kNoSecret, request.domain, descriptor.entries,
                                            descriptor.override_limit->unit),
                 nullptr, {});
    } else if (match.rule != nullptr && !match.rule->limits.empty()) {
      const auto& limits =
          limiter::LimitsOf(rules->published[match.rule->index], request.domain, descriptor, match);
      found[i] = {.rule = match.rule,
                  .limits = limits,
                  .mark = MarkOf(limiter::RuleBucketKey(kNoSecret, request.domain,
                                                        descriptor.entries, match, 0),
                                 match.rule, limits)};
    }
  }
  return found;
}

std::string NameOf(const std::vector<ReservedTake>& takes) {
  std::string marks;
  for (const ReservedTake& take : takes) marks += fmt::format("{:x} ", take.mark);
  constexpr size_t kDigits = 16;
  return wire::DigestHex(wire::Digest::kSha256, marks).substr(0, kDigits);
}

std::vector<ReservedTake> TakesOf(const limiter::Request& request,
                                  const std::vector<FoundBuckets>& found,
                                  const limiter::Response& response) {
  std::vector<ReservedTake> takes(found.size());
  for (size_t i = 0; i < takes.size(); ++i) {
    takes[i].mark = found[i].mark;
    takes[i].at = response.taken_at[i];
    // The rules may have changed since the buckets were found.
    if (response.took[i] && response.descriptors[i].rule == found[i].rule)
      takes[i].cost = request.descriptors[i].cost.value_or(1);
  }
  return takes;
}

uint64_t StillTaken(const ReservedTake& take, const FoundBuckets& found,
                    const DescriptorAnswer& answer, base::Instant taken_at, base::Instant now) {
  if (take.mark != found.mark || answer.rule != found.rule) return 0;
  if (!answer.has_decision() || answer.of_permits) return 0;
  uint64_t still = std::min(take.cost, LackingAtMost(answer));
  const auto bound = [&](const algorithm::Limit& limit) {
    still = std::min(still, algorithm::StillTaken(limit, take.cost, taken_at, now));
  };
  if (answer.rule == nullptr) {
    bound(*answer.limit);
    return still;
  }
  // The same amount goes back to all limits, so the limit that has refilled most by itself decides.
  for (const limiter::PublishedLimit& limit : found.limits) {
    if (HasChangedSince(limit, taken_at)) return 0;
    bound(limit.limit->limit);
  }
  return still;
}

}  // namespace headgate::front::api
