// An answer about permits in the form of a decision, so that fronts report it as any other.
#pragma once

#include <algorithm>

#include "headgate/algorithm/decision.h"
#include "headgate/limiter/permit_hold.h"
#include "headgate/limiter/settled.h"
#include "headgate/permit/permit.h"

namespace headgate::limiter {

// A client that was refused because this process keeps too many permits should not retry at once.
inline constexpr base::Duration kNoRoomRetryAfter = std::chrono::seconds(1);

// `remaining` is the number of requests that the rule lets go in flight now, also if this process
// has no room for one more. A denial lasts at most until
// the earliest end of a permit, but usually ends sooner, when a request ends.
inline algorithm::Decision DecisionOf(const permit::Answer& answer, uint32_t max) {
  using PermitOutcome = permit::Answer::Outcome;
  algorithm::Decision decision{
      .allowed = answer.passes() || answer.outcome == PermitOutcome::kReleased,
      .limit = max,
      .remaining = max - std::min(max, answer.in_flight),
      .reset_after = answer.last_end_after};
  if (decision.allowed) return decision;
  if (max == 0) {
    decision.retry_after = algorithm::kNever;
  } else if (answer.outcome == PermitOutcome::kNoRoom) {
    decision.retry_after = kNoRoomRetryAfter;
  } else {
    decision.retry_after = std::max(base::Duration(1), answer.first_end_after);
  }
  return decision;
}

inline Settled SettledOf(const permit::Answer& answer, const permit::Ask& ask, Mode mode) {
  Settled settled{.decision = DecisionOf(answer, ask.max),
                  .mode = mode,
                  .was_held = answer.outcome == permit::Answer::Outcome::kHeld,
                  .in_flight = answer.in_flight};
  if (ask.kind == permit::Ask::Kind::kClear) {
    settled.decision.allowed = true;
    settled.decision.retry_after = base::Duration(0);
  }
  return settled;
}

// Whether the answer gives a permit to the asker that it did not have. An id that nobody else uses
// can hold a permit only if the store has answered the same question twice.
inline bool Gives(const permit::Answer& answer, PermitHold::Owner owner) {
  return answer.outcome == permit::Answer::Outcome::kGranted ||
         (answer.outcome == permit::Answer::Outcome::kHeld &&
          owner == PermitHold::Owner::kThisRequest);
}

}  // namespace headgate::limiter
