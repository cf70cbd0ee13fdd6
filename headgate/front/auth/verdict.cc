#include "headgate/front/auth/verdict.h"

namespace headgate::front::auth {

std::string_view Name(Outcome outcome) {
  static constexpr std::array<std::string_view, kOutcomeCount> kNames = {
      "allowed", "unmatched", "exempt",  "untrusted", "refused",
      "missing", "invalid",   "no_rule", "denied",    "unavailable"};
  return kNames[static_cast<size_t>(outcome)];
}

std::string_view DescribeRefusal(Outcome outcome) {
  switch (outcome) {
    case Outcome::kUntrusted:
      return "this peer may not ask here";
    case Outcome::kRefused:
      return "this client is refused";
    case Outcome::kMissing:
      return "a part of the request that is needed is missing";
    case Outcome::kInvalid:
      return "a part of the request is malformed or ambiguous";
    case Outcome::kNoRule:
      return "no rule applies to this request";
    case Outcome::kDenied:
      return "over the limit";
    case Outcome::kUnavailable:
      return "the limit cannot be checked at present";
    case Outcome::kAllowed:
    case Outcome::kUnmatched:
    case Outcome::kExempt:
      break;
  }
  return "";
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
