#include "headgate/limiter/conclusion.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "headgate/limiter/request_sizes.h"
#include "headgate/limiter/shadow_rollouts.h"
#include "headgate/limiter/unavailable.h"
#include "headgate/limiter/work.h"
#include "headgate/rule/given_limit.h"

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

// The tightest limit of each descriptor.
void TellBuckets(const Task& task, Response& response) {
  const RequestBuckets& buckets = task.work.buckets;
  for (size_t i = 0; i < buckets.size(); ++i) {
    const BucketSource& source = buckets.source(i);
    if (source.descriptor == kOfId || source.of_shadow_rollout()) continue;
    const Settled& settled = buckets.entry(i).settled;
    DescriptorAnswer& answer = response.descriptors[source.descriptor];
    const base::Duration wait = std::max(answer.decision.wait, settled.decision.wait);
    if (answer.limit == nullptr || Tighter(settled.decision, answer.decision)) {
      answer.limit = source.limit;
      answer.decision = settled.decision;
      answer.of_permits = false;
      answer.limit_index = source.limit_index;
    }
    answer.decision.wait = wait;
    answer.mode = std::max(answer.mode, settled.mode);
  }
}

// `must_be_known`: also for a rule in shadow, the caller must learn that the store was not asked.
Outcome OutcomeOf(const DescriptorAnswer& answer, bool must_be_known) {
  if (answer.rule != nullptr && answer.rule->unlimited) return Outcome::kUnlimited;
  if (answer.limit == nullptr) return Outcome::kNoRule;
  const Outcome outcome = OutcomeOf(answer.decision, answer.mode);
  const bool shadow = answer.rule != nullptr && answer.rule->shadow_mode;
  if (!shadow || answer.decision.allowed) return outcome;
  return must_be_known && outcome == Outcome::kUnavailable ? outcome : Outcome::kShadowDenied;
}

void Observe(const Task& task, size_t descriptor, Outcome outcome) {
  static constexpr Observers::Numbers kNoRule{};
  const Matched& matched = task.work.matches[descriptor];
  DecisionEvent event{.outcome = outcome,
                      .cost = task.request.descriptors[descriptor].cost.value_or(1),
                      .rule = matched.rule,
                      .series = 0,
                      .domain = task.request.domain,
                      .entries = task.request.descriptors[descriptor].entries,
                      .match = &matched.match};
  task.means.observers.TellEach(
      matched.rule != nullptr ? task.rules.published[matched.rule->index].series : kNoRule,
      [&](Observer& one, uint32_t number) {
        if (!one.hears_decisions()) return;
        event.series = number;
        one.OnDecision(task.means.worker, event);
      });
}

void ObserveGiven(const Task& task, size_t descriptor) {
  const std::string_view given = task.request.descriptors[descriptor].given_limit;
  const rule::Rule* const rule = task.work.matches.RuleOf(descriptor);
  if (given.empty() || rule == nullptr) return;
  // One text for all limits of the rule: it is understood if one of them does.
  std::optional<rule::Given> best;
  for (const rule::RuleLimit& limit : rule->limits) {
    if (limit.given == nullptr) continue;
    const rule::Given one = rule::ChooseGiven(*limit.given, given).given;
    best = best ? std::min(*best, one) : one;
  }
  if (!best) return;
  for (Observer* const one : task.means.observers.all())
    one->OnGivenLimit(task.means.worker, *best);
}

void ObserveAll(const Task& task, const Response& response) {
  for (size_t i = 0; i < response.descriptors.size(); ++i) {
    Observe(task, i, response.descriptors[i].outcome);
    ObserveGiven(task, i);
  }
  if (task.work.matches.any_shadow() && !response.repeated) ObserveShadowRollouts(task, response);
}

absl::Status ConcludeDescriptors(const Task& task, bool passthrough, Response& response) {
  const Request& request = task.request;
  const RequestBuckets& buckets = task.work.buckets;
  if (buckets.any_size() || (task.work.has_waited && request.may_stay_unsent)) [[unlikely]]
    TellSizes(task, response);
  if (!task.work.permits.empty()) [[unlikely]]
    task.work.permits.TellIn(task, response);
  TellBuckets(task, response);

  // The caller must learn that, for example, a refund or a reset failed, even for a rule in shadow.
  const bool changes = !AsksToPass(request.operation);
  std::optional<uint32_t> unavailable;
  for (size_t i = 0; i < response.descriptors.size(); ++i) {
    DescriptorAnswer& answer = response.descriptors[i];
    answer.rule = task.work.matches.RuleOf(i);
    answer.outcome = OutcomeOf(answer, changes);
    const bool asked = answer.limit != nullptr && answer.outcome != Outcome::kUnlimited;
    if (asked && response.repeated) MakeRepeated(answer);
    if (answer.outcome == Outcome::kUnavailable) unavailable = static_cast<uint32_t>(i);
  }
  if (request.operation == Operation::kTake && !task.means.observers.empty())
    ObserveAll(task, response);
  response.allowed =
      task.work.matches.PassesBy([&](size_t i) { return response.descriptors[i].allowed(); });
  if (!changes && passthrough) [[unlikely]] {
    PassThrough(unavailable.has_value(), response);
    return absl::OkStatus();
  }
  if (!unavailable) return absl::OkStatus();
  return Unavailable(request.operation, response.descriptors[*unavailable].rule,
                     buckets.PerhapsDone(*unavailable), buckets.WhyUnasked(*unavailable));
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

absl::Status Conclude(const Task& task, bool passthrough, Response& response) {
  const RequestId& id = task.work.id;
  id.TellIn(response);
  const absl::Status concluded = ConcludeDescriptors(task, passthrough, response);
  const bool refunds_once = RefundsOnce(task.request);
  if (!concluded.ok()) {
    if (refunds_once && !response.repeated) id.ReleaseRefund(task);
    return concluded;
  }
  if (task.request.tells_takes || (refunds_once && !response.repeated))
    id.TellTakes(task, response);
  return absl::OkStatus();
}

}  // namespace headgate::limiter
