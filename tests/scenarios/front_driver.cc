#include "tests/scenarios/front_driver.h"

#include <utility>

#include "tests/scenarios/rule_text.h"

namespace headgate::testing {

absl::Status FrontDriver::SetRules(std::span<const ScenarioRule> rules, base::Instant now) {
  HEADGATE_ASSIGN_OR_RETURN(auto loaded, LoadScenarioRules(rules));
  return limiter_.OnRules(std::move(loaded), now);
}

std::string FrontDriver::Send(net::Session& session, std::string_view bytes, base::Instant now) {
  std::string output;
  net::Session::Progress progress;
  do {
    progress = session.OnBytes(bytes, output, now);
    bytes.remove_prefix(progress.consumed);
  } while (progress.more);
  return output;
}

}  // namespace headgate::testing
