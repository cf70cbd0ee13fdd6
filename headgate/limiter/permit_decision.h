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

// How long a client that was refused should wait. Nobody knows when a request ends. One that has
// been in flight for some time is expected to take as long again; that may be less than a second,
// but no longer than until its permit ends by itself. `ttl` is that of the rule.
inline base::Duration RetryAfterFull(base::Duration first_end_after, base::Duration ttl) {
  const base::Duration in_flight_for = std::max(base::Duration(0), ttl - first_end_after);
  const base::Duration expected = std::max<base::Duration>(std::chrono::seconds(1), in_flight_for);
  return std::clamp(first_end_after, base::Duration(1), expected);
}

// `remaining` is the number of requests that the rule lets go in flight now, also if this process
// has no room for one more.
inline algorithm::Decision DecisionOf(const permit::Answer& answer, uint32_t max,
                                      base::Duration ttl) {
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
    decision.retry_after = RetryAfterFull(answer.first_end_after, ttl);
  }
  return decision;
}

inline Settled SettledOf(const permit::Answer& answer, const permit::Ask& ask, Mode mode) {
  Settled settled{.decision = DecisionOf(answer, ask.max, ask.ttl),
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
