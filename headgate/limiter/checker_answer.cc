// The part of a Checker that makes the answer, once all steps of a request are done, and reports it
// to the observer.
#include <algorithm>
#include <array>
#include <string>

#include "headgate/limiter/checker.h"
#include "headgate/limiter/published_rules.h"
#include "headgate/limiter/work.h"

namespace headgate::limiter {

using algorithm::Decision;

namespace {

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

absl::Status Checker::Conclude(const Call& call, Response& response) {
  const Request& request = call.request;
  response.repeated = work_->repeated;
  response.remembered = work_->remembered;
  response.first_passed_at = work_->first_passed_at;
  const absl::Status concluded = ConcludeBuckets(call, response);
  const bool refunds_once = RefundsOnce(request);
  if (!concluded.ok() && refunds_once && !response.repeated) ReleaseRefundId(call);
  HEADGATE_RETURN_IF_ERROR(concluded);
  if (request.tells_takes || (refunds_once && !response.repeated))
    TellTakes(call, TakesOnce(request) || refunds_once ? &work_->batch[work_->group] : nullptr,
              response);
  return absl::OkStatus();
}

absl::Status Checker::ConcludeBuckets(const Call& call, Response& response) const {
  const Request& request = call.request;
  if (work_->any_size || (work_->has_waited && request.may_stay_unsent)) [[unlikely]]
    ConcludeSizes(call, response);
  if (!work_->permit_of.empty()) [[unlikely]]
    ConcludePermits(call, response);
  for (size_t i = 0; i < work_->batch.size(); ++i) {
    const Work::Source& source = work_->sources[i];
    if (source.descriptor == kOfOnce || source.of_shadow_rollout()) continue;
    const Settled& settled = work_->batch[i].settled;
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
    outcome.rule = work_->matched[i].rule;
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
    if (work_->any_shadow && !response.repeated) ObserveRollouts(call, response);
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

// Counts what each rule and its roll-out in shadow would do, if both could be asked.
void Checker::ObserveRollouts(const Call& call, const Response& response) const {
  const auto& sources = work_->sources;
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
      const Settled& settled = work_->batch[i].settled;
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
  const Matched& matched = work_->matched[descriptor];
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
