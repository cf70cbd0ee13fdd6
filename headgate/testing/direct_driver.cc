#include "headgate/testing/direct_driver.h"

#include <utility>

#include "headgate/testing/scenario_rules.h"

namespace headgate::testing {

absl::Status DirectDriver::SetRules(std::span<const ScenarioRule> rules, base::Instant now) {
  HEADGATE_ASSIGN_OR_RETURN(auto built, BuildScenarioRules(rules));
  return limiter_.OnRules(std::move(built), now);
}

absl::StatusOr<algorithm::Decision> DirectDriver::Answer(const Ask& ask, base::Instant now) {
  const rule::Entry entry{.key = kScenarioKey, .value = ask.key};
  const rule::Descriptor descriptor{.entries = {&entry, 1}, .cost = ask.cost};
  limiter::Request request{.domain = ask.rule, .descriptors = {&descriptor, 1}};
  if (ask.operation == Ask::Operation::kRefund) request.operation = store::Operation::kRefund;
  if (ask.operation == Ask::Operation::kReset) request.operation = store::Operation::kReset;
  HEADGATE_RETURN_IF_ERROR(checker_.Check(request, response_, now));
  return response_.descriptors[0].decision;
}

}  // namespace headgate::testing
