#include "headgate/store/breaker.h"

#include <algorithm>
#include <utility>

#include "headgate/base/check.h"

namespace headgate::store {

Breaker::Pass Breaker::Ask(base::BootTime now) {
  if (state_ == State::kClosed) {
    if (calls_under_way_++ == 0) asked_since_ = now;
    return Pass::kCall;
  }
  if (state_ == State::kOpen && now < open_until_) return Pass::kRefused;
  if (probing_) return Pass::kRefused;
  state_ = State::kHalfOpen;
  probing_ = true;
  return Pass::kProbe;
}

void Breaker::Finish(Pass pass, Outcome outcome, base::BootTime now) {
  if (pass == Pass::kProbe) {
    HEADGATE_CHECK(probing_);
    probing_ = false;
    // If the outcome is kNeither, the next call becomes the probe.
    if (outcome == Outcome::kSuccess) Close();
    if (outcome == Outcome::kFailure || outcome == Outcome::kNoAnswer) Open(now);
    return;
  }
  --calls_under_way_;
  // Calls that were sent before the breaker opened say nothing about the present.
  if (state_ != State::kClosed || outcome == Outcome::kNeither) return;
  const base::BootTime since = std::exchange(finished_at_, now);
  if (outcome == Outcome::kSuccess) {
    failed_in_row_ = 0;
    return;
  }
  if (failed_in_row_++ == 0) failing_for_ = base::Duration(0);
  if (outcome == Outcome::kNoAnswer) {
    failing_for_ += now - std::max(since, asked_since_);
  } else if (failed_in_row_ > 1) {
    failing_for_ += now - since;
  }
  if (failed_in_row_ >= options_.failures_in_row && failing_for_ >= options_.no_progress) Open(now);
}

void Breaker::Open(base::BootTime now) {
  base::Duration open = options_.open_min;
  for (uint32_t i = 0; i < opened_in_row_ && open < options_.open_max; ++i) open *= 2;
  open_until_ = now + random_.Jitter(std::min(open, options_.open_max), options_.jitter_percent);
  ++opened_in_row_;
  ++opened_;
  state_ = State::kOpen;
}

void Breaker::Close() {
  state_ = State::kClosed;
  failed_in_row_ = 0;
  opened_in_row_ = 0;
}

}  // namespace headgate::store
