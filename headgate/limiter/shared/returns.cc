// Returns leases when the process ends.
#include <utility>

#include "headgate/limiter/shared/shared_decider.h"

namespace headgate::limiter::shared {

using lease::LeaseAction;
using lease::LeaseMessage;

void SharedDecider::ReturnLeases(ReturnsDone done) {
  if (leases_ == nullptr) return done(0);
  leases_->Close();
  const ReturnPace pace(options_.timeout, leases_->ttl(), shared_.Now());
  returns_.emplace(Returns{.pace = pace, .done = std::move(done), .part = size_t{options_.loop}});
  SendReturns();
}

void SharedDecider::SendReturns() {
  // A store that is known to be unreachable answers within the call.
  if (returns_->done == nullptr || std::exchange(returns_->sending, true)) return;
  bool any = true;
  while (any && !returns_->pace.GivesUp(shared_.Now()) &&
         returns_->pace.MaySend(lease_messages_, shared_.Now())) {
    LeaseMessage* message = nullptr;
    any = leases_->ReturnNext(returns_->part, shared_.Now(),
                              [&](const LeaseAction& action) { message = &Kept(action); });
    if (message != nullptr) Send(*message);
  }
  returns_->sending = false;
  returns_->has_more = any && lease_messages_ < ReturnPace::kAtOnce;
  const bool all = !any && lease_messages_ == 0;
  if (all || returns_->pace.GivesUp(shared_.Now()))
    std::exchange(returns_->done, nullptr)(returns_->keys);
}

void SharedDecider::OnReturned(bool only_returns, bool ok) {
  if (only_returns && ok) ++returns_->keys;
  returns_->pace.OnAnswer(ok, shared_.Now());
  SendReturns();
}

}  // namespace headgate::limiter::shared
