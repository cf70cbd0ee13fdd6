#include "headgate/limiter/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "headgate/algorithm/decide.h"
#include "headgate/base/check.h"
#include "headgate/limiter/bucket_key.h"
#include "headgate/limiter/published_rules.h"
#include "headgate/limiter/work.h"

namespace headgate::limiter {

using algorithm::Decision;

namespace {

absl::Status Validate(const Request& request) {
  if (request.domain.empty())
    return absl::InvalidArgumentError("rate limit domain must not be empty");
  if (request.descriptors.empty())
    return absl::InvalidArgumentError("rate limit descriptor list must not be empty");
  if (request.descriptors.size() > rule::kDescriptorsMax) {
    return absl::InvalidArgumentError(
        fmt::format("more than {} descriptors", rule::kDescriptorsMax));
  }
  for (const rule::Descriptor& descriptor : request.descriptors) {
    if (descriptor.entries.size() > rule::kEntriesMax) {
      return absl::InvalidArgumentError(
          fmt::format("more than {} entries in a descriptor", rule::kEntriesMax));
    }
  }
  return absl::OkStatus();
}

// The entries take nothing, each for itself.
void PeekOnly(std::span<BatchEntry> entries) {
  for (BatchEntry& entry : entries) {
    entry.request.operation = Operation::kPeek;
    entry.request.joined = store::Joined::kNo;
  }
}

void Clear(const Request& request, Response& response) {
  response.waiting = response.repeated = response.remembered = false;
  response.passed_despite.reset();
  response.concurrency.reset();
  response.descriptors.clear();
  response.descriptors.resize(request.descriptors.size());
  response.sized.clear();
  response.took.clear();
  response.taken_at.clear();
  const bool refunds_once = request.operation == Operation::kRefund && !request.once.id.empty();
  if (!request.tells_takes && !refunds_once) return;
  response.took.resize(request.descriptors.size(), false);
  response.taken_at.resize(request.descriptors.size(), base::Instant{0});
}

}  // namespace

Checker::Checker(Limiter& limiter, uint32_t worker)
    : limiter_(limiter),
      worker_(worker),
      own_decider_(limiter.store(), limiter.permits()),
      decider_(own_decider_),
      caches_(std::make_unique<Caches>()),
      work_(std::make_unique<Work>()) {}

Checker::Checker(Limiter& limiter, uint32_t worker, Decider& decider, const BucketNaming& naming)
    : limiter_(limiter),
      worker_(worker),
      own_decider_(limiter.store(), limiter.permits()),
      decider_(decider),
      naming_(naming),
      caches_(std::make_unique<Caches>()),
      work_(std::make_unique<Work>()) {}

Checker::~Checker() = default;

const PublishedRules* Checker::published() {
  TakeUpRules();
  return rules_.get();
}

const rule::RuleSet* Checker::rules() {
  const PublishedRules* const rules = published();
  return rules == nullptr ? nullptr : rules->rules.get();
}

void Checker::TakeUpRules() {
  const uint64_t generation = limiter_.generation_.load(std::memory_order_acquire);
  if (generation == generation_) [[likely]]
    return;
  rules_ = limiter_.published();
  generation_ = generation;
}

absl::StatusOr<const PublishedRules*> Checker::Begin(const Request& request, Question* question) {
  HEADGATE_RETURN_IF_ERROR(Validate(request));
  TakeUpRules();
  work_->awaits = Awaits::kNothing;
  work_->has_waited = work_->repeated = work_->remembered = false;
  work_->first_passed_at = base::Instant{0};
  work_->permits.clear();
  work_->permit_of.clear();
  if (decider_.may_wait()) {
    HEADGATE_CHECK(question != nullptr && !question->open());
    // They decide the request to its end, and the answer refers to them.
    answered_by_ = rules_;
    question->pending_.Keep(rules_);
  }
  if (rules_ == nullptr) return absl::FailedPreconditionError("no rate limit configuration loaded");
  return rules_.get();
}

// The question takes over the request. False, for the caller to return.
bool Checker::Wait(const Call& call, Awaits awaited) {
  Question& question = *call.question;
  if (&call.request != &question.request()) question.kept_.Keep(call.request);
  work_->awaits = awaited;
  work_->has_waited = true;
  std::unique_ptr<Work> next;
  if (spare_.empty()) {
    next = std::make_unique<Work>();
  } else {
    next = std::move(spare_.back());
    spare_.pop_back();
  }
  question.work_ = std::exchange(work_, std::move(next));
  return false;
}

// Takes the request back from the question, together with the answers of the store.
Checker::Call Checker::TakeBack(Question& question, base::Instant now) {
  HEADGATE_CHECK(question.open() && !question.waiting());
  if (spare_.size() < kSpareMax) spare_.push_back(std::move(work_));
  work_ = std::move(question.work_);
  const std::span<const Settled> settled = question.pending_.settled();
  HEADGATE_CHECK(settled.size() == work_->asked.size());
  for (size_t i = 0; i < settled.size(); ++i) work_->asked[i] = settled[i];
  question.pending_.Forget();
  answered_by_ = question.pending_.rules();
  return {.request = question.request(), .rules = *answered_by_, .question = &question, .now = now};
}

// The request is answered.
void Checker::End(const Call& call) {
  if (call.question != nullptr) call.question->pending_.Keep(nullptr);
}

absl::Status Checker::Check(const Request& request, Response& response, base::Instant now,
                            Question* question) {
  Clear(request, response);
  const absl::StatusOr<const PublishedRules*> rules = Begin(request, question);
  if (absl::IsFailedPrecondition(rules.status()) && AsksToPass(request.operation) &&
      passthrough()) {
    // There are no rules yet.
    response.allowed = true;
    response.passed_despite = Outcome::kUnavailable;
    return absl::OkStatus();
  }
  if (!rules.ok()) return rules.status();
  return Answer({.request = request,
                 .rules = **rules,
                 .question = decider_.may_wait() ? question : nullptr,
                 .now = now},
                response);
}

absl::Status Checker::Continue(Question& question, Response& response, base::Instant now) {
  response.waiting = question.waiting();
  if (response.waiting) return absl::OkStatus();
  Clear(question.request(), response);
  return Answer(TakeBack(question, now), response);
}

absl::Status Checker::Answer(const Call& call, Response& response) {
  const absl::StatusOr<bool> decided = Decide(call);
  response.waiting = decided.ok() && !*decided;
  if (response.waiting) return absl::OkStatus();
  const absl::Status status = decided.ok() ? Conclude(call, response) : decided.status();
  End(call);
  const Request& request = call.request;
  if (request.permits != nullptr && (!status.ok() || !response.allowed))
    request.permits->Release(call.now);
  return status;
}

// Takes one step after the other, until one has to wait for the store: then false, and the request
// continues behind this step later. Each step finds what the earlier ones have left in `work_`. A
// request pays only for the steps that it needs.
absl::StatusOr<bool> Checker::Decide(const Call& call) {
  const bool has_permits = AsksPermits(call);
  const bool refunds_once = RefundsOnce(call.request);
  switch (work_->awaits) {
    case Awaits::kNothing:
      Match(call);
      // Permits come first, because they can be given back exactly.
      if (has_permits && !AskPermits(call, nullptr)) return Wait(call, Awaits::kPermits);
      [[fallthrough]];
    case Awaits::kPermits:
      if (has_permits) ReadPermits(call);
      HEADGATE_RETURN_IF_ERROR(AddBuckets(call));
      if (work_->has_quotas() && !DecidePart(call, 0, work_->group))
        return Wait(call, Awaits::kQuotas);
      [[fallthrough]];
    case Awaits::kQuotas:
      if (work_->has_quotas()) ReadQuotas(call);
      if (refunds_once && !DecidePart(call, 0, 1)) return Wait(call, Awaits::kRefundId);
      [[fallthrough]];
    case Awaits::kRefundId:
      if (refunds_once) HEADGATE_RETURN_IF_ERROR(ReadRefundId(call));
      if (!DecideMembers(call)) return Wait(call, Awaits::kBuckets);
      [[fallthrough]];
    case Awaits::kBuckets:
      if (TakesOnce(call.request)) ReadId(call);
      if (work_->has_quotas() && !GiveBackQuotas(call)) return Wait(call, Awaits::kQuotasReturned);
      [[fallthrough]];
    case Awaits::kQuotasReturned:
      if (work_->has_quotas()) ReadReturns();
      if (work_->any_shadow && !DecideShadows(call)) return Wait(call, Awaits::kShadows);
      [[fallthrough]];
    case Awaits::kShadows:
      if (has_permits && !AcquireFound(call)) return Wait(call, Awaits::kAcquired);
      [[fallthrough]];
    case Awaits::kAcquired:
      if (has_permits && !GiveBackRefused(call)) return Wait(call, Awaits::kCostsReturned);
      [[fallthrough]];
    case Awaits::kCostsReturned:
      if (!has_permits) break;
      ReadReturns();
      ObservePermits(call);
  }
  return true;
}

// If all rules in quota mode deny, the group is only peeked at.
void Checker::ReadQuotas(const Call& call) {
  work_->quotas_deny = !PassesBy(call, [&](size_t i) { return !IsQuota(i) || !Denies(i); });
  if (work_->quotas_deny) PeekOnly(work_->members());
}

bool Checker::DecideMembers(const Call& call) {
  // The id of a refund has been used up before.
  const size_t first = work_->group + (RefundsOnce(call.request) ? 1 : 0);
  return DecidePart(call, first, work_->enforced - first);
}

bool Checker::MembersDeny() const {
  const auto denies = [](const BatchEntry& entry) { return !entry.settled.decision.allowed; };
  return std::ranges::any_of(work_->members(), denies);
}

// The costs of the quotas go back if the group denies.
bool Checker::GiveBackQuotas(const Call& call) {
  if (work_->quotas_deny || !MembersDeny()) return true;
  return GiveBackCosts(call, [&](uint32_t i) { return IsQuota(i); });
}

bool Checker::DecideShadows(const Call& call) {
  if (work_->enforced == work_->batch.size()) return true;
  if (work_->joined && (work_->quotas_deny || MembersDeny())) PeekOnly(work_->shadows());
  return DecidePart(call, work_->enforced, work_->shadows().size());
}

// Decides `count` requests of the batch. False if the answers come later.
bool Checker::DecidePart(const Call& call, size_t first, size_t count) {
  return DecideBuckets(call, std::span(work_->batch).subspan(first, count),
                       [first](size_t index) { return first + index; });
}

// `place` says to which request of the batch the bucket of an entry belongs.
bool Checker::DecideBuckets(const Call& call, std::span<BatchEntry> entries,
                            absl::FunctionRef<size_t(size_t)> place) {
  if (entries.empty()) return true;
  const auto name = [&](size_t index, std::string& out) {
    const Work::Source& source = work_->sources[place(index)];
    if (source.descriptor == kOfOnce)
      return AppendOnceBucket(naming_, call.request.domain, call.request.once.id, out);
    const rule::Descriptor& descriptor = call.request.descriptors[source.descriptor];
    const Matched& matched = work_->matched[source.descriptor];
    if (matched.rule != nullptr) {
      AppendRuleBucket(naming_, call.request.domain, descriptor.entries, matched.match,
                       source.limit_index, out);
    } else {
      AppendOverrideBucket(naming_, call.request.domain, descriptor.entries,
                           descriptor.override_limit->unit, out);
    }
  };
  work_->asked = base::Strided<Settled>::Of(entries, &BatchEntry::settled);
  return decider_.Decide(entries, name, PendingOf(call), call.now);
}

void Checker::Match(const Call& call) {
  const Request& request = call.request;
  auto& matched = work_->matched;
  matched.resize(request.descriptors.size());
  work_->given.clear();
  work_->any_quota = work_->any_shadow = false;
  bool any_replaces = false;
  for (size_t i = 0; i < matched.size(); ++i) {
    const rule::Descriptor& descriptor = request.descriptors[i];
    Matched& m = matched[i];
    m.domain_known = call.rules.rules->Find(request.domain, descriptor.entries, m.match);
    m.rule = descriptor.override_limit ? nullptr : m.match.rule;
    if (m.rule == nullptr) continue;
    any_replaces = any_replaces || !m.rule->replaces.empty();
    work_->any_quota = work_->any_quota || m.rule->quota_mode;
    work_->any_shadow = work_->any_shadow || m.rule->shadow_mode || m.rule->rollout != nullptr;
  }
  if (any_replaces) [[unlikely]] {
    for (const Matched& replacing : matched) {
      if (replacing.match.rule == nullptr) continue;
      for (const std::string& name : replacing.match.rule->replaces) {
        for (Matched& m : matched) {
          if (m.rule != nullptr && m.rule->name == name) m.rule = nullptr;
        }
      }
    }
  }
}

bool Checker::IsQuota(size_t descriptor) const {
  const rule::Rule* const rule = work_->matched[descriptor].rule;
  return rule != nullptr && rule->quota_mode;
}

// Whether a request passes by what its descriptors say. Rules in quota mode deny it only if all of
// them do.
bool Checker::PassesBy(const Call& call, absl::FunctionRef<bool(size_t)> allows) const {
  if (!work_->any_quota) [[likely]] {
    for (size_t i = 0; i < call.request.descriptors.size(); ++i) {
      if (!allows(i)) return false;
    }
    return true;
  }
  size_t quota_count = 0;
  size_t quota_denied = 0;
  for (size_t i = 0; i < call.request.descriptors.size(); ++i) {
    const bool is_quota = IsQuota(i);
    if (!is_quota && !allows(i)) return false;
    quota_count += is_quota ? 1u : 0u;
    quota_denied += is_quota && !allows(i) ? 1u : 0u;
  }
  return quota_count == 0 || quota_denied < quota_count;
}

}  // namespace headgate::limiter
