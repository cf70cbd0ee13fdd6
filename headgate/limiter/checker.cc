#include "headgate/limiter/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "headgate/algorithm/decide.h"
#include "headgate/base/check.h"
#include "headgate/limiter/bucket_key.h"
#include "headgate/limiter/checker_scratch.h"
#include "headgate/limiter/published_rules.h"
#include "headgate/rule/rule_names.h"

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

// A cost that the request states takes the place of its size. A turn in a queue is not given back.
const rule::SizeCost* SizeOf(const Request& request, const rule::Descriptor& descriptor,
                             const PublishedLimit& limit) {
  static const rule::SizeCost kSent{.of = rule::SizeCost::Of::kSent};
  // A stated cost is not a size. But it can be given back by status.
  const bool is_later =
      limit.cost && (!descriptor.cost || limit.cost->of == rule::SizeCost::Of::kCountedAnswers);
  if (is_later) return &*limit.cost;
  const bool takes_back = algorithm::TakesRefunds(limit.limit->limit.algorithm());
  return request.may_stay_unsent && takes_back ? &kSent : nullptr;
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

// The entries take nothing, each for itself.
void LookOnly(std::span<BatchEntry> entries) {
  for (BatchEntry& entry : entries) {
    entry.request.operation = Operation::kPeek;
    entry.request.joined = store::Joined::kNo;
  }
}

// The first request has passed, so this one does, whatever the limit says now.
void MakeRepeated(DescriptorAnswer& answer) {
  answer.outcome = Outcome::kRepeated;
  answer.decision.allowed = true;
  answer.decision.retry_after = base::Duration(0);
}

// Whatever was decided, the answer is that the request may pass.
void PassThrough(bool unavailable, Response& response) {
  if (unavailable || !response.allowed)
    response.passed_despite = unavailable ? Outcome::kUnavailable : Outcome::kDenied;
  response.allowed = true;
  for (DescriptorAnswer& answer : response.descriptors) {
    if (!answer.allowed()) answer.outcome = Outcome::kShadowDenied;
    if (answer.has_decision()) answer.decision = PassedThrough(answer.decision);
  }
}

}  // namespace

std::string_view Name(Outcome outcome) {
  constexpr std::array<std::string_view, kOutcomeCount> kNames{
      "allowed",   "denied",      "shadow_denied", "never_fits", "no_rule",
      "unlimited", "unavailable", "repeated",      "blocked"};
  return kNames[static_cast<size_t>(outcome)];
}

Outcome OutcomeOf(const Decision& decision, Mode mode) {
  if (mode == Mode::kClosed) return Outcome::kUnavailable;
  if (decision.allowed) return Outcome::kAllowed;
  if (decision.never_fits()) return Outcome::kNeverFits;
  return decision.blocked() ? Outcome::kBlocked : Outcome::kDenied;
}

Checker::Checker(Limiter& limiter, uint32_t worker)
    : limiter_(limiter),
      worker_(worker),
      own_decider_(limiter.store(), limiter.permits()),
      decider_(own_decider_),
      scratch_(std::make_unique<Scratch>()) {}

Checker::Checker(Limiter& limiter, uint32_t worker, Decider& decider, const BucketNaming& naming)
    : limiter_(limiter),
      worker_(worker),
      own_decider_(limiter.store(), limiter.permits()),
      decider_(decider),
      naming_(naming),
      scratch_(std::make_unique<Scratch>()) {}

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

absl::StatusOr<const PublishedRules*> Checker::BeginRound(const Request& request,
                                                          Pending* pending) {
  HEADGATE_RETURN_IF_ERROR(Validate(request));
  TakeUpRules();
  const PublishedRules* rules = rules_.get();
  if (decider_.may_wait()) {
    HEADGATE_CHECK(pending != nullptr);
    // A request that is asked again is decided by the rules of its first attempt.
    answered_by_ = pending->BeginRound(rules_);
    rules = answered_by_.get();
  }
  if (rules == nullptr) return absl::FailedPreconditionError("no rate limit configuration loaded");
  return rules;
}

absl::Status Checker::Check(const Request& request, Response& response, base::Instant now,
                            Pending* pending) {
  response.waiting = response.repeated = false;
  response.passed_despite.reset();
  response.sized.clear();
  response.took.clear();
  response.taken_at.clear();
  if (request.tells_takes || RefundsOnce(request)) {
    response.took.resize(request.descriptors.size(), false);
    response.taken_at.resize(request.descriptors.size(), base::Instant{0});
  }
  const absl::StatusOr<const PublishedRules*> rules = BeginRound(request, pending);
  if (absl::IsFailedPrecondition(rules.status()) && AsksToPass(request.operation) &&
      passthrough()) {
    // There are no rules yet.
    response.allowed = true;
    response.passed_despite = Outcome::kUnavailable;
    response.concurrency.reset();
    response.descriptors.assign(request.descriptors.size(), DescriptorAnswer{});
    return absl::OkStatus();
  }
  if (!rules.ok()) return rules.status();
  Pending* const asked = decider_.may_wait() ? pending : nullptr;
  const absl::Status status =
      Decide({.request = request, .rules = **rules, .pending = asked, .now = now}, response);
  if (response.waiting) return status;
  if (asked != nullptr) asked->Forget();
  if (request.permits != nullptr && (!status.ok() || !response.allowed))
    request.permits->Release(now);
  return status;
}

absl::Status Checker::Decide(const Call& call, Response& response) {
  Match(call);
  response.descriptors.clear();
  response.descriptors.resize(call.request.descriptors.size());
  scratch_->permit_of.clear();
  response.concurrency.reset();
  // Permits come first, because they can be given back exactly.
  if (call.rules.limits_concurrency && !call.request.skips_permits) [[unlikely]] {
    response.waiting = !AskPermits(call, nullptr);
    if (response.waiting) return absl::OkStatus();
  }

  // Rules in shadow never block another rule: they are decided after the others, and in an
  // all-or-nothing domain they consume only if the others allowed.
  const bool once = call.request.operation == Operation::kTake && !call.request.once.id.empty();
  const bool joined = once || (call.request.operation == Operation::kTake &&
                               scratch_->matched.front().match.all_or_nothing);
  std::vector<BatchEntry>& batch = scratch_->batch;
  batch.clear();
  scratch_->sources.clear();
  scratch_->any_size = false;
  // Rules in quota mode do not belong to the group, because one of them may deny while the request
  // passes. They come first, so that the group is the last word.
  if (joined && scratch_->any_quota) HEADGATE_RETURN_IF_ERROR(AddRequests(call, Part::kQuotas));
  const size_t group = batch.size();
  const bool refunds_once = RefundsOnce(call.request);
  if (once || refunds_once) HEADGATE_RETURN_IF_ERROR(AddOnce(call));
  HEADGATE_RETURN_IF_ERROR(AddRequests(call, joined ? Part::kGroup : Part::kEnforced));
  const size_t enforced = batch.size();
  for (size_t i = group + 1; joined && i < enforced; ++i) {
    if (batch[i].request.joined == store::Joined::kNo)
      batch[i].request.joined = store::Joined::kOtherRule;
  }
  if (scratch_->any_shadow) HEADGATE_RETURN_IF_ERROR(AddRequests(call, Part::kShadow));
  if (!scratch_->permit_of.empty()) [[unlikely]]
    SpareBuckets(call, joined);

  bool denied = false;
  response.waiting = group > 0 && !DecideQuotas(call, group, enforced, denied);
  if (response.waiting) return absl::OkStatus();
  if (refunds_once) [[unlikely]] {
    HEADGATE_ASSIGN_OR_RETURN(const bool is_decided, UseUpRefundId(call, response));
    response.waiting = !is_decided;
    if (response.waiting) return absl::OkStatus();
  }
  const size_t first = refunds_once ? group + 1 : group;
  response.waiting = !DecidePart(call, first, enforced - first);
  if (response.waiting) return absl::OkStatus();
  if (once) {
    const Settled& id = batch[group].settled;
    response.repeated = !id.decision.allowed;
    response.remembered = !IsDegraded(id.mode);
    if (response.repeated)
      response.first_passed_at = call.now + id.decision.reset_after - call.request.once.window;
  }
  const auto denies = [](const BatchEntry& entry) { return !entry.settled.decision.allowed; };
  const std::span<BatchEntry> members = std::span(batch).subspan(group, enforced - group);
  if (group > 0 && !denied && std::any_of(members.begin(), members.end(), denies)) {
    response.waiting = !GiveBackCosts(call, [&](uint32_t i) { return IsQuota(i); });
    if (response.waiting) return absl::OkStatus();
  }
  if (enforced < batch.size()) {
    const auto shadows = std::span(batch).subspan(enforced);
    if (joined && (denied || std::any_of(members.begin(), members.end(), denies))) {
      LookOnly(shadows);
    }
    response.waiting = !DecidePart(call, enforced, shadows.size());
    if (response.waiting) return absl::OkStatus();
  }
  if (!scratch_->permit_of.empty()) [[unlikely]] {
    response.waiting = scratch_->may_repeat && !response.repeated && !AcquireFound(call, joined);
    if (response.waiting) return absl::OkStatus();
    ObservePermits(call);
  }
  const absl::Status concluded = Conclude(call, response);
  if (!concluded.ok() && refunds_once && !response.repeated) ReleaseRefundId(call);
  HEADGATE_RETURN_IF_ERROR(concluded);
  if (call.request.tells_takes || (refunds_once && !response.repeated))
    TellTakes(call, once || refunds_once ? &batch[group] : nullptr, response);
  return absl::OkStatus();
}

// Decides the first requests of the batch, up to `group`. If all rules in quota mode deny, the
// group, up to `enforced`, is only looked at. False if the answers come later.
bool Checker::DecideQuotas(const Call& call, size_t group, size_t enforced, bool& denied) {
  if (!DecidePart(call, 0, group)) return false;
  denied = !PassesBy(call, [&](size_t i) { return !IsQuota(i) || !Denies(i); });
  if (denied) LookOnly(std::span(scratch_->batch).subspan(group, enforced - group));
  return true;
}

// Decides `count` requests of the batch. False if the answers come later.
bool Checker::DecidePart(const Call& call, size_t first, size_t count) {
  return DecideBuckets(call, std::span(scratch_->batch).subspan(first, count),
                       [first](size_t index) { return first + index; });
}

// `place` says to which request of the batch the bucket of an entry belongs.
bool Checker::DecideBuckets(const Call& call, std::span<BatchEntry> entries,
                            absl::FunctionRef<size_t(size_t)> place) {
  if (entries.empty()) return true;
  const auto name = [&](size_t index, std::string& out) {
    const Scratch::Source& source = scratch_->sources[place(index)];
    if (source.descriptor == kOfOnce)
      return AppendOnceBucket(naming_, call.request.domain, call.request.once.id, out);
    const rule::Descriptor& descriptor = call.request.descriptors[source.descriptor];
    const Matched& matched = scratch_->matched[source.descriptor];
    if (matched.rule != nullptr) {
      AppendRuleBucket(naming_, call.request.domain, descriptor.entries, matched.match,
                       source.limit_index, out);
    } else {
      AppendOverrideBucket(naming_, call.request.domain, descriptor.entries,
                           descriptor.override_limit->unit, out);
    }
  };
  if (call.pending == nullptr) return decider_.Decide(entries, name, nullptr, call.now);
  return call.pending->Resume(base::Strided<Settled>::Of(entries, &BatchEntry::settled), [&] {
    return decider_.Decide(entries, name, call.pending, call.now);
  });
}

void Checker::Match(const Call& call) {
  const Request& request = call.request;
  auto& matched = scratch_->matched;
  matched.resize(request.descriptors.size());
  scratch_->given.clear();
  scratch_->any_quota = scratch_->any_shadow = false;
  bool any_replaces = false;
  for (size_t i = 0; i < matched.size(); ++i) {
    const rule::Descriptor& descriptor = request.descriptors[i];
    Matched& m = matched[i];
    m.domain_known = call.rules.rules->Find(request.domain, descriptor.entries, m.match);
    m.rule = descriptor.override_limit ? nullptr : m.match.rule;
    if (m.rule == nullptr) continue;
    any_replaces = any_replaces || !m.rule->replaces.empty();
    scratch_->any_quota = scratch_->any_quota || m.rule->quota_mode;
    scratch_->any_shadow =
        scratch_->any_shadow || m.rule->shadow_mode || m.rule->rollout != nullptr;
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

absl::Status Checker::AddRequests(const Call& call, Part part) {
  const bool shadow = part == Part::kShadow;
  const auto is_of_part = [&](const rule::Rule& rule) {
    if (rule.shadow_mode || shadow) return rule.shadow_mode == shadow;
    return part == Part::kEnforced || rule.quota_mode == (part == Part::kQuotas);
  };
  for (uint32_t i = 0; i < call.request.descriptors.size(); ++i) {
    Matched& matched = scratch_->matched[i];
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
  const Matched& matched = scratch_->matched[of.descriptor];
  const algorithm::Limit& limit = chosen.limit->limit;
  BatchEntry& entry = scratch_->batch.emplace_back();
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
  Scratch::Source& source = scratch_->sources.emplace_back();
  source.descriptor = of.descriptor;
  source.limit_index = of.limit_index;
  source.limit = &limit;
  source.size = SizeOf(request, descriptor, published);
  scratch_->any_size = scratch_->any_size || source.size != nullptr;
}

absl::Status Checker::AddOverride(const Call& call, uint32_t descriptor_index, Matched& matched) {
  const Request& request = call.request;
  const rule::Descriptor& descriptor = request.descriptors[descriptor_index];
  HEADGATE_ASSIGN_OR_RETURN(matched.override_limit, OverrideLimit(*descriptor.override_limit));
  scratch_->batch.push_back(
      {.request = {.key = OverrideBucketKey(limiter_.store_.hash_secret(), request.domain,
                                            descriptor.entries, descriptor.override_limit->unit),
                   .limit = matched.override_limit.get(),
                   .cost = descriptor.cost.value_or(request.operation == Operation::kPeek ? 0 : 1),
                   .operation = request.operation,
                   .taken_at = TakenAt(request, descriptor_index, matched.override_limit->limit)},
       .terms = decider_.default_terms()});
  scratch_->sources.push_back({descriptor_index, 0, &matched.override_limit->limit});
  return absl::OkStatus();
}

absl::StatusOr<store::LimitHandle> Checker::OverrideLimit(const rule::OverrideLimit& limit) {
  auto& cache = scratch_->overrides;
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

absl::Status Checker::Conclude(const Call& call, Response& response) {
  if (scratch_->any_size) [[unlikely]]
    ConcludeSizes(call, response);
  if (!scratch_->permit_of.empty()) [[unlikely]]
    ConcludePermits(call, response);
  for (size_t i = 0; i < scratch_->batch.size(); ++i) {
    const Scratch::Source& source = scratch_->sources[i];
    if (source.descriptor == kOfOnce || source.of_shadow_rollout()) continue;
    const Settled& settled = scratch_->batch[i].settled;
    DescriptorAnswer& outcome = response.descriptors[source.descriptor];
    const base::Duration wait = std::max(outcome.decision.wait, settled.decision.wait);
    if (outcome.limit == nullptr || Tighter(settled.decision, outcome.decision)) {
      outcome.limit = source.limit;
      outcome.decision = settled.decision;
      outcome.of_permits = false;
      outcome.limit_index = source.limit_index;
    }
    outcome.decision.wait = wait;
    outcome.mode = std::max(outcome.mode, settled.mode);
  }

  // The caller must learn that, for example, a refund or a reset failed, even for a rule in shadow.
  const Operation operation = call.request.operation;
  const bool changes = !AsksToPass(operation);
  std::optional<uint32_t> unavailable;
  for (size_t i = 0; i < response.descriptors.size(); ++i) {
    DescriptorAnswer& outcome = response.descriptors[i];
    outcome.rule = scratch_->matched[i].rule;
    const bool shadow = outcome.rule != nullptr && outcome.rule->shadow_mode;
    if (outcome.rule != nullptr && outcome.rule->unlimited) {
      outcome.outcome = Outcome::kUnlimited;
    } else if (outcome.limit != nullptr) {
      outcome.outcome = OutcomeOf(outcome.decision, outcome.mode);
      const bool must_be_known = changes && outcome.outcome == Outcome::kUnavailable;
      if (shadow && !outcome.decision.allowed && !must_be_known)
        outcome.outcome = Outcome::kShadowDenied;
      if (response.repeated) MakeRepeated(outcome);
      if (outcome.outcome == Outcome::kUnavailable) unavailable = static_cast<uint32_t>(i);
    }
  }
  if (operation == Operation::kTake && limiter_.observer_ != nullptr) {
    for (size_t i = 0; i < response.descriptors.size(); ++i) {
      Observe(call, i, response.descriptors[i].outcome);
      ObserveGiven(call, i);
    }
    if (scratch_->any_shadow && !response.repeated) ObserveRollouts(call, response);
  }
  response.allowed = PassesBy(call, [&](size_t i) { return response.descriptors[i].allowed(); });
  if (!changes && passthrough()) [[unlikely]] {
    PassThrough(unavailable.has_value(), response);
    return absl::OkStatus();
  }
  if (!unavailable) return absl::OkStatus();
  return absl::UnavailableError(Unasked(operation, response.descriptors[*unavailable].rule,
                                        PerhapsDone(*unavailable), WhyUnasked(*unavailable)));
}

bool Checker::IsQuota(size_t descriptor) const {
  const rule::Rule* const rule = scratch_->matched[descriptor].rule;
  return rule != nullptr && rule->quota_mode;
}

// Whether a request passes by what its descriptors say. Rules in quota mode deny it only if all of
// them do.
bool Checker::PassesBy(const Call& call, absl::FunctionRef<bool(size_t)> allows) const {
  if (!scratch_->any_quota) [[likely]] {
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

// Counts what each rule and its roll-out in shadow would do, if both could be asked.
void Checker::ObserveRollouts(const Call& call, const Response& response) const {
  const auto& sources = scratch_->sources;
  for (size_t i = 0; i < sources.size();) {
    if (!sources[i].of_shadow_rollout()) {
      ++i;
      continue;
    }
    const uint32_t descriptor = sources[i].descriptor;
    bool allows = true;
    bool known = true;
    for (; i < sources.size() && sources[i].descriptor == descriptor &&
           sources[i].of_shadow_rollout();
         ++i) {
      const Settled& settled = scratch_->batch[i].settled;
      allows = allows && settled.decision.allowed;
      known = known && !IsDegraded(settled.mode);
    }
    const DescriptorAnswer& answer = response.descriptors[descriptor];
    if (!known || IsDegraded(answer.mode)) continue;
    limiter_.observer_->OnShadowRollout(
        worker_, {.series = call.rules.published[answer.rule->index].rollout_series,
                  .rule_allows = answer.limit == nullptr || answer.decision.allowed,
                  .rollout_allows = allows});
  }
}

void Checker::Observe(const Call& call, size_t descriptor, Outcome outcome) const {
  const Matched& matched = scratch_->matched[descriptor];
  limiter_.observer_->OnDecision(
      worker_,
      {.outcome = outcome,
       .cost = call.request.descriptors[descriptor].cost.value_or(1),
       .rule = matched.rule,
       .series = matched.rule != nullptr ? call.rules.published[matched.rule->index].series : 0,
       .domain = call.request.domain,
       .entries = call.request.descriptors[descriptor].entries,
       .match = &matched.match});
}

}  // namespace headgate::limiter
