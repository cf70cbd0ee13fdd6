#include "headgate/front/auth/verdict.h"

namespace headgate::front::auth {

std::string_view Name(Outcome outcome) {
  static constexpr std::array<std::string_view, kOutcomeCount> kNames = {
      "allowed", "unmatched", "exempt",  "untrusted", "refused",
      "missing", "invalid",   "no_rule", "denied",    "unavailable"};
  return kNames[static_cast<size_t>(outcome)];
}

void EmitFields(const Verdict& verdict, answer::LimitAnswer& answer, base::Instant now,
                wire::EmitField emit) {
  if (verdict.limit) {
    answer.EmitFields(*verdict.limit, now, emit);
  } else {
    wire::EmitEmptyRateLimitFields(answer.dialect(), emit);
  }
  if (verdict.outcome == Outcome::kUnavailable) emit("Retry-After", answer::kUnavailableRetryAfter);
}

}  // namespace headgate::front::auth
