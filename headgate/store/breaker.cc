#include "headgate/store/breaker.h"

#include <algorithm>

#include "headgate/base/check.h"

namespace headgate::store {

Breaker::Pass Breaker::Ask(base::BootTime now) {
  if (state_ == State::kClosed) return Pass::kCall;
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
    if (outcome == Outcome::kFailure) Open(now);
    return;
  }
  // Calls that were sent before the breaker opened say nothing about the present.
  if (state_ != State::kClosed || outcome == Outcome::kNeither) return;
  if (outcome == Outcome::kSuccess) {
    failed_in_row_ = 0;
    return;
  }
  if (failed_in_row_++ == 0) failing_since_ = now;
  if (failed_in_row_ >= options_.failures_in_row && now - failing_since_ >= options_.no_progress)
    Open(now);
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
