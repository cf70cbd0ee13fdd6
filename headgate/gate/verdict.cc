#include "headgate/gate/verdict.h"

#include <fmt/format.h>

#include "headgate/wire/origin.h"

namespace headgate::gate {

std::string_view Name(RequestOutcome outcome) {
  static constexpr std::array<std::string_view, kRequestOutcomeCount> kNames = {
      "allowed", "unmatched", "exempt",  "preflight", "passthrough", "untrusted",
      "refused", "missing",   "invalid", "no_rule",   "denied",      "unavailable"};
  return kNames[static_cast<size_t>(outcome)];
}

std::string_view DescribeRefusal(RequestOutcome outcome) {
  switch (outcome) {
    case RequestOutcome::kUntrusted:
      return "this peer may not ask here";
    case RequestOutcome::kRefused:
      return "this client is refused";
    case RequestOutcome::kMissing:
      return "a part of the request that is needed is missing";
    case RequestOutcome::kInvalid:
      return "a part of the request is malformed or ambiguous";
    case RequestOutcome::kNoRule:
      return "no rule applies to this request";
    case RequestOutcome::kDenied:
      return "over the limit";
    case RequestOutcome::kUnavailable:
      return "the limit cannot be checked at present";
    case RequestOutcome::kAllowed:
    case RequestOutcome::kUnmatched:
    case RequestOutcome::kExempt:
    case RequestOutcome::kPreflight:
    case RequestOutcome::kPassthrough:
      break;
  }
  return "";
}

std::string ChallengeOf(const Verdict& verdict) {
  if (verdict.status != 401 || !verdict.lacks_bearer) return "";
  std::string challenge = R"(Bearer realm="headgate")";
  if (verdict.token_refusal != jwt::Refusal::kNone) {
    challenge += fmt::format(R"(, error="invalid_token", error_description="{}")",
                             jwt::Describe(verdict.token_refusal));
  }
  return challenge;
}

bool WriteRefusal(const Verdict& verdict, std::string& content_type, std::string& body) {
  if (verdict.outcome != RequestOutcome::kDenied || verdict.refusal == nullptr || !verdict.limit)
    return false;
  content_type = verdict.refusal->content_type();
  verdict.refusal->AppendBody(answer::RefusedOf(*verdict.limit), body);
  return true;
}

void EmitFields(const Verdict& verdict, answer::LimitAnswer& answer, base::Instant now,
                wire::EmitField emit) {
  if (verdict.limit) answer.EmitFields(*verdict.limit, now, emit);
  if (Passes(verdict.outcome)) {
    wire::EmitEmptyRateLimitFields(answer.dialect(), verdict.limit ? &*verdict.limit : nullptr,
                                   emit);
    return;
  }
  if (verdict.outcome == RequestOutcome::kUnavailable)
    emit("Retry-After", answer::kUnavailableRetryAfter);
  const auto own = verdict.limit ? verdict.limit->dialect : std::nullopt;
  std::string scratch;
  wire::EmitCorsFields({.origin = verdict.cors_origin, .varies = verdict.varies_by_origin},
                       own.value_or(answer.dialect()), scratch, emit);
}

}  // namespace headgate::gate
