#include "headgate/limiter/request_buckets.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "headgate/algorithm/decide.h"
#include "headgate/limiter/bucket_key.h"
#include "headgate/limiter/request_sizes.h"
#include "headgate/limiter/shadow_rollouts.h"
#include "headgate/limiter/work.h"

namespace headgate::limiter {
namespace {

// The entries take nothing, each for itself.
void PeekAll(std::span<BatchEntry> entries) {
  for (BatchEntry& entry : entries) {
    entry.request.operation = Operation::kPeek;
    entry.request.joined = store::Joined::kNo;
  }
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

void RequestBuckets::Clear() {
  batch_.clear();
  sources_.clear();
  brought_.clear();
  group_ = enforced_ = 0;
  joined_ = any_size_ = quotas_deny_ = false;
}

absl::Status RequestBuckets::Add(const Task& task) {
  const bool takes_once = TakesOnce(task.request);
  const Matches& matches = task.work.matches;
  joined_ = takes_once || (task.request.operation == Operation::kTake && matches.all_or_nothing());
  // Rules in quota mode do not belong to the group, because one of them may deny while the request
  // passes. They come first, so that the group is the last word.
  if (joined_ && matches.any_quota()) HEADGATE_RETURN_IF_ERROR(AddPart(task, Part::kQuotas));
  group_ = batch_.size();
  if (takes_once || RefundsOnce(task.request))
    HEADGATE_RETURN_IF_ERROR(task.work.id.AddTo(task, *this));
  HEADGATE_RETURN_IF_ERROR(AddPart(task, joined_ ? Part::kGroup : Part::kEnforced));
  enforced_ = batch_.size();
  for (size_t i = group_ + 1; joined_ && i < enforced_; ++i) {
    if (batch_[i].request.joined == store::Joined::kNo)
      batch_[i].request.joined = store::Joined::kOtherRule;
  }
  // Rules in shadow never block another rule: they are decided after the others, and in an
  // all-or-nothing domain they consume only if the others allowed.
  if (matches.any_shadow()) HEADGATE_RETURN_IF_ERROR(AddPart(task, Part::kShadow));
  return absl::OkStatus();
}

absl::Status RequestBuckets::AddPart(const Task& task, Part part) {
  const bool shadow = part == Part::kShadow;
  const auto is_of_part = [&](const rule::Rule& rule) {
    if (rule.shadow_mode || shadow) return rule.shadow_mode == shadow;
    return part == Part::kEnforced || rule.quota_mode == (part == Part::kQuotas);
  };
  for (uint32_t i = 0; i < task.request.descriptors.size(); ++i) {
    const Matched& matched = task.work.matches[i];
    if (task.request.descriptors[i].override_limit && matched.domain_known) {
      if (!shadow && part != Part::kQuotas) HEADGATE_RETURN_IF_ERROR(AddOverride(task, i));
    } else if (matched.rule != nullptr && !matched.rule->unlimited && is_of_part(*matched.rule)) {
      HEADGATE_RETURN_IF_ERROR(AddRule(task, i));
    }
    if (shadow && matched.rule != nullptr && HasShadowRollout(*matched.rule)) [[unlikely]]
      AddShadowRollout(task, i, *this);
  }
  return absl::OkStatus();
}

ChosenLimit RequestBuckets::Choose(const Task& task, uint32_t descriptor,
                                   const PublishedLimit& limit) {
  return task.brought.Choose(limit, task.request.descriptors[descriptor].given_limit, brought_);
}

absl::Status RequestBuckets::AddRule(const Task& task, uint32_t descriptor) {
  const Request& request = task.request;
  const Matched& matched = task.work.matches[descriptor];
  const std::vector<PublishedLimit>& limits =
      LimitsOf(task.rules.published[matched.rule->index], request.domain,
               request.descriptors[descriptor], matched.match);
  for (uint32_t k = 0; k < limits.size(); ++k) {
    const ChosenLimit chosen = Choose(task, descriptor, limits[k]);
    if (GivesBack(request.operation) && !algorithm::TakesRefunds(chosen.limit->limit.algorithm())) {
      const std::string reason(algorithm::RefundRefused().message());
      return absl::FailedPreconditionError(
          fmt::format("rule {}: {}", matched.rule->label(), reason));
    }
    AddLimit(task, {.descriptor = descriptor, .limit_index = k}, limits[k], chosen, k > 0);
  }
  return absl::OkStatus();
}

// The entry is filled in its place in the batch: a copy would wait until its parts have been
// written.
void RequestBuckets::AddLimit(const Task& task, BucketOf of, const PublishedLimit& published,
                              const ChosenLimit& chosen, bool follows) {
  const Request& request = task.request;
  const rule::Descriptor& descriptor = request.descriptors[of.descriptor];
  const Matched& matched = task.work.matches[of.descriptor];
  const algorithm::Limit& limit = chosen.limit->limit;
  BatchEntry& entry = batch_.emplace_back();
  entry.terms = TermsFor(published, task.means.decider.TermsOf(*matched.rule));
  entry.request.key =
      RuleBucketKey(task.means.store.hash_secret(), request.domain, descriptor.entries,
                    matched.match, static_cast<uint8_t>(of.limit_index));
  entry.request.limit = chosen.limit;
  entry.request.history = chosen.history;
  entry.request.cost = CostOf(request, descriptor, published.cost);
  entry.request.operation = request.operation;
  entry.request.taken_at = TakenAt(request, of.descriptor, limit);
  if (follows && request.operation == Operation::kTake)
    entry.request.joined = store::Joined::kSameRule;
  BucketSource& source = sources_.emplace_back();
  source.descriptor = of.descriptor;
  source.limit_index = of.limit_index;
  source.limit = &limit;
  source.size = SizeOf(descriptor, published);
  any_size_ = any_size_ || source.size != nullptr;
}

absl::Status RequestBuckets::AddOverride(const Task& task, uint32_t descriptor_index) {
  const Request& request = task.request;
  const rule::Descriptor& descriptor = request.descriptors[descriptor_index];
  Matched& matched = task.work.matches[descriptor_index];
  HEADGATE_ASSIGN_OR_RETURN(matched.override_limit,
                            task.brought.Override(*descriptor.override_limit));
  batch_.push_back(
      {.request = {.key = OverrideBucketKey(task.means.store.hash_secret(), request.domain,
                                            descriptor.entries, descriptor.override_limit->unit),
                   .limit = matched.override_limit.get(),
                   .cost = CostOf(request, descriptor, std::nullopt),
                   .operation = request.operation,
                   .taken_at = TakenAt(request, descriptor_index, matched.override_limit->limit)},
       .terms = task.means.decider.default_terms()});
  sources_.push_back({descriptor_index, 0, &matched.override_limit->limit});
  return absl::OkStatus();
}

void RequestBuckets::AddId(const BatchEntry& entry, const algorithm::Limit& limit) {
  batch_.push_back(entry);
  sources_.push_back({kOfId, 0, &limit});
}

void RequestBuckets::AddOnly(const BatchEntry& entry, const BucketSource& source) {
  batch_.assign({entry});
  sources_.assign({source});
  group_ = 0;
  enforced_ = 1;
}

// If all rules in quota mode deny, the group is only peeked at.
void RequestBuckets::ReadQuotas(const Task& task) {
  const Matches& matches = task.work.matches;
  quotas_deny_ = !matches.PassesBy([&](size_t i) {
    return !matches.IsQuota(i) ||
           !(task.work.permits.Denies(i) || Denies(static_cast<uint32_t>(i)));
  });
  if (quotas_deny_) PeekAll(members());
}

bool RequestBuckets::DecideMembers(const Task& task) {
  // The id of a refund has been used up before.
  const size_t first = group_ + (RefundsOnce(task.request) ? 1 : 0);
  return DecidePart(task, first, enforced_ - first);
}

bool RequestBuckets::MembersDeny() const {
  const auto denies = [](const BatchEntry& entry) { return !entry.settled.decision.allowed; };
  return std::ranges::any_of(members(), denies);
}

bool RequestBuckets::GiveBackQuotas(const Task& task) {
  if (quotas_deny_ || !MembersDeny()) return true;
  return GiveBack(task, [&](uint32_t i) { return task.work.matches.IsQuota(i); });
}

bool RequestBuckets::DecideShadows(const Task& task) {
  if (enforced_ == batch_.size()) return true;
  if (joined_ && (quotas_deny_ || MembersDeny())) PeekAll(std::span(batch_).subspan(enforced_));
  return DecidePart(task, enforced_, batch_.size() - enforced_);
}

bool RequestBuckets::DecidePart(const Task& task, size_t first, size_t count) {
  return Decide(task, std::span(batch_).subspan(first, count),
                [first](size_t index) { return first + index; });
}

// `place` says to which request of the batch the bucket of an entry belongs.
bool RequestBuckets::Decide(const Task& task, std::span<BatchEntry> entries,
                            absl::FunctionRef<size_t(size_t)> place) {
  if (entries.empty()) return true;
  const Request& request = task.request;
  const BucketNaming& naming = task.means.naming;
  const auto name = [&](size_t index, std::string& out) {
    const BucketSource& source = sources_[place(index)];
    if (source.descriptor == kOfId)
      return AppendOnceBucket(naming, request.domain, request.once.id, out);
    const rule::Descriptor& descriptor = request.descriptors[source.descriptor];
    const Matched& matched = task.work.matches[source.descriptor];
    if (matched.rule != nullptr) {
      AppendRuleBucket(naming, request.domain, descriptor.entries, matched.match,
                       source.limit_index, out);
    } else {
      AppendOverrideBucket(naming, request.domain, descriptor.entries,
                           descriptor.override_limit->unit, out);
    }
  };
  task.work.asked = base::Strided<Settled>::Of(entries, &BatchEntry::settled);
  return task.means.decider.Decide(entries, name, task.pending(), task.now);
}

bool RequestBuckets::GiveBack(const Task& task, absl::FunctionRef<bool(uint32_t)> of_descriptor) {
  for (size_t k = 0; k < batch_.size(); ++k) {
    const BatchEntry& entry = batch_[k];
    const uint32_t descriptor = sources_[k].descriptor;
    if (descriptor == kOfId || entry.request.operation != Operation::kTake ||
        !entry.settled.decision.allowed || IsDegraded(entry.settled.mode) ||
        !algorithm::TakesRefunds(entry.request.limit->limit.algorithm()) ||
        !of_descriptor(descriptor))
      continue;
    undos_.push_back(entry);
    undos_.back().BecomeUndo();
    undo_places_.push_back(k);
  }
  return Decide(task, undos_, [&](size_t index) { return undo_places_[index]; });
}

void RequestBuckets::ReadReturns() {
  for (size_t k = 0; k < undos_.size(); ++k) {
    BatchEntry& entry = batch_[undo_places_[k]];
    const Settled& undone = undos_[k].settled;
    if (!IsDegraded(undone.mode)) entry.settled.decision.remaining = undone.decision.remaining;
    // Nothing of it is there to be given back again.
    entry.request.operation = Operation::kPeek;
  }
  undos_.clear();
  undo_places_.clear();
}

void RequestBuckets::PeekOnly(size_t index) { PeekAll({&batch_[index], 1}); }

bool RequestBuckets::Denies(uint32_t descriptor) const {
  for (size_t k = 0; k < batch_.size(); ++k) {
    if (sources_[k].descriptor == descriptor && !sources_[k].of_shadow_rollout() &&
        !batch_[k].settled.decision.allowed)
      return true;
  }
  return false;
}

bool RequestBuckets::PerhapsDone(uint32_t descriptor) const {
  for (size_t k = 0; k < batch_.size(); ++k) {
    if (sources_[k].descriptor == descriptor && batch_[k].settled.perhaps_done) return true;
  }
  return false;
}

NoAnswer RequestBuckets::WhyUnasked(uint32_t descriptor) const {
  for (size_t k = 0; k < batch_.size(); ++k) {
    if (sources_[k].descriptor == descriptor && IsDegraded(batch_[k].settled.mode))
      return batch_[k].settled.no_answer;
  }
  return NoAnswer::kUnreachable;
}

}  // namespace headgate::limiter
