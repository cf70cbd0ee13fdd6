#include "headgate/gate/verdict_metrics.h"

namespace headgate::gate {

using observe::Metric;

void VerdictSums::Add(const Counters& counters) {
  for (size_t i = 0; i < outcomes_.size(); ++i) outcomes_[i] += counters.outcomes[i].value();
  for (size_t i = 0; i < token_refusals_.size(); ++i)
    token_refusals_[i] += counters.token_refusals[i].value();
  repeated_ += counters.repeated.value();
  held_ += counters.held_begun.value() - counters.held_ended.value();
}

void VerdictSums::Report(observe::Sink& sink) const {
  for (size_t i = 0; i < outcomes_.size(); ++i) {
    const auto outcome = static_cast<RequestOutcome>(i);
    if (outcome == RequestOutcome::kPassthrough)
      continue;  // counted under the outcome that was decided
    sink.Set(Metric::kAuthRequests, {Name(outcome)}, outcomes_[i]);
  }
  for (size_t i = 0; i < token_refusals_.size(); ++i) {
    const auto refusal = static_cast<jwt::Refusal>(i);
    if (refusal == jwt::Refusal::kNone) continue;
    sink.Set(Metric::kTokensRefused, {jwt::Name(refusal)}, token_refusals_[i]);
  }
  sink.Set(Metric::kAuthRepeated, {}, repeated_);
  sink.Set(Metric::kAuthHeld, {}, held_);
}

std::function<void(std::string_view reason, std::string_view mapping)> LogInvalidRequests(
    observe::Log* log) {
  if (log == nullptr) return nullptr;
  return [log](std::string_view reason, std::string_view mapping) {
    log->Debug("request.refused", {{"reason", reason}, {"mapping", mapping}});
  };
}

std::function<void(jwt::Refusal reason, std::string_view mapping)> LogTokensRefused(
    observe::Log* log) {
  if (log == nullptr) return nullptr;
  return [log](jwt::Refusal reason, std::string_view mapping) {
    log->Debug("token.refused", {{"reason", jwt::Describe(reason)}, {"mapping", mapping}});
  };
}

}  // namespace headgate::gate
