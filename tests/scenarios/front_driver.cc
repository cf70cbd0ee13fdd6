#include "tests/scenarios/front_driver.h"

#include <utility>

#include "headgate/base/check.h"
#include "tests/scenarios/rule_text.h"

namespace headgate::testing {

FrontDriver::FrontDriver(Decides decides) {
  if (decides == Decides::kAtOnce) {
    checker_.emplace(limiter_);
  } else {
    store::SharedStore* shared = &shared_;
    if (decides == Decides::kByScripts) shared = &scripts_;
    fleet_.emplace(*shared, store_, limiter::SharedDeciderOptions{});
    checker_.emplace(limiter_, /*worker=*/0, *fleet_, limiter::BucketNaming{});
  }
}

absl::Status FrontDriver::SetRules(std::span<const ScenarioRule> rules, base::Instant now) {
  HEADGATE_ASSIGN_OR_RETURN(auto loaded, LoadScenarioRules(rules));
  return limiter_.OnRules(std::move(loaded), now);
}

std::string FrontDriver::Send(net::Session& session, std::string_view bytes, base::Instant now) {
  now_ = now;
  bool woken = false;
  session.SetWaker([&] { woken = true; });
  std::string output;
  net::Session::Progress progress;
  do {
    progress = session.OnBytes(bytes, output, now);
    bytes.remove_prefix(progress.consumed);
    if (!progress.waiting()) continue;
    HEADGATE_CHECK(!woken);
    shared_.AnswerAll();
    HEADGATE_CHECK(std::exchange(woken, false));
  } while (progress.more || progress.waiting());
  return output;
}

}  // namespace headgate::testing
