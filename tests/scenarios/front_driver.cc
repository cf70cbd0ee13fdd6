#include "tests/scenarios/front_driver.h"

#include "headgate/base/check.h"
#include "tests/scenarios/rule_text.h"

namespace headgate::testing {

FrontDriver::FrontDriver(const MakeSharedStore& make) {
  if (!make) {
    checker_.emplace(limiter_);
    return;
  }
  shared_ = make(store_);
  // Nothing may be decided without the shared store.
  fleet_.emplace(
      shared_->store(), store_,
      limiter::shared::SharedDeciderOptions{.on_store_failure = rule::OnStoreFailure::kDeny});
  checker_.emplace(limiter_, /*worker=*/0, *fleet_, limiter::BucketNaming{});
}

absl::Status FrontDriver::SetRules(std::span<const ScenarioRule> rules, base::Instant now) {
  HEADGATE_ASSIGN_OR_RETURN(auto loaded, LoadScenarioRules(rules));
  return limiter_.OnRules(std::move(loaded), now);
}

std::string FrontDriver::Send(net::Session& session, std::string_view bytes, base::Instant now) {
  if (shared_ != nullptr) shared_->SetNow(now);
  bool woken = false;
  session.SetWaker([&] { woken = true; });
  std::string output;
  net::Session::Progress progress;
  do {
    progress = session.OnBytes(bytes, output, now);
    bytes.remove_prefix(progress.consumed);
    if (!progress.waiting()) continue;
    HEADGATE_CHECK(!woken);
    HEADGATE_CHECK(shared_->Wait([&] { return woken; }));
    woken = false;
  } while (progress.more || progress.waiting());
  return output;
}

}  // namespace headgate::testing
