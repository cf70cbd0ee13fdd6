#include "headgate/store/backend_options.h"

namespace headgate::store {

void CheckBreaker(const BreakerOptions& breaker, std::vector<OptionProblem>& problems) {
  using enum BackendOption;
  const base::Duration zero(0);
  if (breaker.open_min <= zero)
    problems.push_back({kBreakerOpenMin, "breaker_open_min must be more than 0"});
  if (breaker.no_progress < zero)
    problems.push_back({kBreakerNoProgress, "breaker_no_progress is less than 0"});
  if (breaker.open_max < breaker.open_min)
    problems.push_back({kBreakerOpenMax, "breaker_open_max is less than breaker_open_min"});
  if (breaker.failures_in_row == 0)
    problems.push_back({kBreakerFailuresInRow, "breaker_failures_in_row must be at least 1"});
}

}  // namespace headgate::store
