// The part of a Checker that makes the requests to buckets: the batch, in the order in which it is
// decided.
//
//   rules in quota mode | the id of the request, other rules | rules and roll-outs in shadow
#include <fmt/format.h>

#include <string>
#include <vector>

#include "headgate/algorithm/decide.h"
#include "headgate/limiter/bucket_key.h"
#include "headgate/limiter/checker.h"
#include "headgate/limiter/published_rules.h"
#include "headgate/limiter/work.h"

namespace headgate::limiter {
namespace {

// A cost that the request states takes the place of its size. But it can be given back by status.
const rule::SizeCost* SizeOf(const rule::Descriptor& descriptor, const PublishedLimit& limit) {
  const bool is_later =
      limit.cost && (!descriptor.cost || limit.cost->of == rule::SizeCost::Of::kCountedAnswers);
  return is_later ? &*limit.cost : nullptr;
}

// The time that an undo names. The refill of a bucket first pays for the part that stays taken, so
// the other part is as if taken when that one is paid.
base::Instant TakenAt(const Request& request, uint32_t descriptor, const algorithm::Limit& limit) {
  if (request.operation != Operation::kUndo) return base::Instant{0};
  const Request::Undone& undone = request.undone[descriptor];
  if (!IsTokenBucket(limit.algorithm()) || limit.denies_all()) return undone.taken_at;
  return base::Clamp(undone.taken_at + base::Duration(static_cast<int64_t>(
                                           algorithm::PriceOfAny(limit, undone.kept).ns)));
}

}  // namespace

// The requests to buckets, in the order in which they are decided.
absl::Status Checker::AddBuckets(const Call& call) {
  std::vector<BatchEntry>& batch = work_->batch;
  batch.clear();
  work_->sources.clear();
  work_->any_size = work_->quotas_deny = false;
  const bool has_id = TakesOnce(call.request) || RefundsOnce(call.request);
  work_->joined = TakesOnce(call.request) || (call.request.operation == Operation::kTake &&
                                              work_->matched.front().match.all_or_nothing);
  // Rules in quota mode do not belong to the group, because one of them may deny while the request
  // passes. They come first, so that the group is the last word.
  if (work_->joined && work_->any_quota) HEADGATE_RETURN_IF_ERROR(AddRequests(call, Part::kQuotas));
  work_->group = batch.size();
  if (has_id) HEADGATE_RETURN_IF_ERROR(AddOnce(call));
  HEADGATE_RETURN_IF_ERROR(AddRequests(call, work_->joined ? Part::kGroup : Part::kEnforced));
  work_->enforced = batch.size();
  for (size_t i = work_->group + 1; work_->joined && i < work_->enforced; ++i) {
    if (batch[i].request.joined == store::Joined::kNo)
      batch[i].request.joined = store::Joined::kOtherRule;
  }
  // Rules in shadow never block another rule: they are decided after the others, and in an
  // all-or-nothing domain they consume only if the others allowed.
  if (work_->any_shadow) HEADGATE_RETURN_IF_ERROR(AddRequests(call, Part::kShadow));
  if (!work_->permit_of.empty()) [[unlikely]]
    SpareBuckets(call);
  return absl::OkStatus();
}

absl::Status Checker::AddRequests(const Call& call, Part part) {
  const bool shadow = part == Part::kShadow;
  const auto is_of_part = [&](const rule::Rule& rule) {
    if (rule.shadow_mode || shadow) return rule.shadow_mode == shadow;
    return part == Part::kEnforced || rule.quota_mode == (part == Part::kQuotas);
  };
  for (uint32_t i = 0; i < call.request.descriptors.size(); ++i) {
    Matched& matched = work_->matched[i];
    if (call.request.descriptors[i].override_limit && matched.domain_known) {
      if (!shadow && part != Part::kQuotas) HEADGATE_RETURN_IF_ERROR(AddOverride(call, i, matched));
    } else if (matched.rule != nullptr && !matched.rule->unlimited && is_of_part(*matched.rule)) {
      HEADGATE_RETURN_IF_ERROR(AddRule(call, i, matched));
    }
    if (shadow && matched.rule != nullptr && matched.rule->rollout != nullptr &&
        matched.rule->rollout->shadow()) [[unlikely]] {
      AddShadowRollout(call, i, matched);
    }
  }
  return absl::OkStatus();
}

absl::Status Checker::AddRule(const Call& call, uint32_t descriptor_index, const Matched& matched) {
  const Request& request = call.request;
  const rule::Descriptor& descriptor = request.descriptors[descriptor_index];
  const std::vector<PublishedLimit>& limits = LimitsOf(call.rules.published[matched.rule->index],
                                                       request.domain, descriptor, matched.match);
  for (uint32_t k = 0; k < limits.size(); ++k) {
    const LimitOfRequest chosen = LimitFor(limits[k], descriptor.given_limit);
    if (GivesBack(request.operation) && !algorithm::TakesRefunds(chosen.limit->limit.algorithm())) {
      const std::string reason(algorithm::RefundRefused().message());
      return absl::FailedPreconditionError(
          fmt::format("rule {}: {}", matched.rule->label(), reason));
    }
    AddLimit(call, {.descriptor = descriptor_index, .limit_index = k}, limits[k], chosen, k > 0);
  }
  return absl::OkStatus();
}

// The limits of a roll-out in shadow have buckets of their own, beside those of the rule.
void Checker::AddShadowRollout(const Call& call, uint32_t descriptor_index,
                               const Matched& matched) {
  const Request& request = call.request;
  if (request.operation == Operation::kPeek) return;
  const rule::Descriptor& descriptor = request.descriptors[descriptor_index];
  const std::vector<PublishedLimit>& limits = call.rules.published[matched.rule->index].shadow;
  bool first = true;
  for (uint32_t k = 0; k < limits.size(); ++k) {
    const LimitOfRequest chosen = LimitFor(limits[k], descriptor.given_limit);
    if (GivesBack(request.operation) && !algorithm::TakesRefunds(chosen.limit->limit.algorithm()))
      continue;
    const auto index = static_cast<uint32_t>(rule::kLimitsPerRuleMax + k);
    AddLimit(call, {.descriptor = descriptor_index, .limit_index = index}, limits[k], chosen,
             !first);
    first = false;
  }
}

// `follows`: it is not the first one of its rule. The entry is filled in its place in the batch: a
// copy would wait until its parts have been written.
void Checker::AddLimit(const Call& call, BucketOf of, const PublishedLimit& published,
                       const LimitOfRequest& chosen, bool follows) {
  const Request& request = call.request;
  const rule::Descriptor& descriptor = request.descriptors[of.descriptor];
  const Matched& matched = work_->matched[of.descriptor];
  const algorithm::Limit& limit = chosen.limit->limit;
  BatchEntry& entry = work_->batch.emplace_back();
  entry.terms = TermsFor(published, decider_.TermsOf(*matched.rule));
  entry.request.key =
      RuleBucketKey(limiter_.store_.hash_secret(), request.domain, descriptor.entries,
                    matched.match, static_cast<uint8_t>(of.limit_index));
  entry.request.limit = chosen.limit;
  entry.request.history = chosen.history;
  entry.request.cost = CostOf(request, descriptor, published.cost);
  entry.request.operation = request.operation;
  entry.request.taken_at = TakenAt(request, of.descriptor, limit);
  if (follows && request.operation == Operation::kTake)
    entry.request.joined = store::Joined::kSameRule;
  Work::Source& source = work_->sources.emplace_back();
  source.descriptor = of.descriptor;
  source.limit_index = of.limit_index;
  source.limit = &limit;
  source.size = limiter::SizeOf(descriptor, published);
  work_->any_size = work_->any_size || source.size != nullptr;
}

absl::Status Checker::AddOverride(const Call& call, uint32_t descriptor_index, Matched& matched) {
  const Request& request = call.request;
  const rule::Descriptor& descriptor = request.descriptors[descriptor_index];
  HEADGATE_ASSIGN_OR_RETURN(matched.override_limit, OverrideLimit(*descriptor.override_limit));
  work_->batch.push_back(
      {.request = {.key = OverrideBucketKey(limiter_.store_.hash_secret(), request.domain,
                                            descriptor.entries, descriptor.override_limit->unit),
                   .limit = matched.override_limit.get(),
                   .cost = CostOf(request, descriptor, std::nullopt),
                   .operation = request.operation,
                   .taken_at = TakenAt(request, descriptor_index, matched.override_limit->limit)},
       .terms = decider_.default_terms()});
  work_->sources.push_back({descriptor_index, 0, &matched.override_limit->limit});
  return absl::OkStatus();
}

absl::StatusOr<store::LimitHandle> Checker::OverrideLimit(const rule::OverrideLimit& limit) {
  auto& cache = caches_->overrides;
  const uint64_t id = uint64_t{limit.requests_per_unit} << 8 | static_cast<uint8_t>(limit.unit);
  if (const auto found = cache.find(id); found != cache.end()) return found->second;
  // An override has Envoy's format and Envoy's meaning: a window aligned to the epoch that counts
  // denied hits.
  HEADGATE_ASSIGN_OR_RETURN(const algorithm::Limit made,
                            algorithm::Limit::Make({.algorithm = algorithm::Algorithm::kFixedWindow,
                                                    .requests = limit.requests_per_unit,
                                                    .period = rule::PeriodOf(limit.unit),
                                                    .count_denied = true}));
  HEADGATE_ASSIGN_OR_RETURN(store::LimitHandle handle, limiter_.store_.limits().Intern(made));
  if (cache.size() >= kOverridesCachedMax) cache.clear();
  cache.emplace(id, handle);
  return handle;
}

}  // namespace headgate::limiter
