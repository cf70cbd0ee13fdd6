// The answer of forward-auth to a proxy, before it is written in the proxy's protocol.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/answer/limit_answer.h"
#include "headgate/base/counter.h"
#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/jwt/verifier.h"
#include "headgate/limiter/mode.h"
#include "headgate/wire/http_fields.h"

namespace headgate::gate {

enum class RequestOutcome : uint8_t {
  kAllowed,      // within all limits
  kUnmatched,    // no mapping fits; passes
  kExempt,       // passes
  kPreflight,    // passes
  kPassthrough,  // passes, though another outcome was counted
  kUntrusted,    // the proxy is not one of trusted_proxies
  kRefused,      // named by a list of `refuse`
  kMissing,      // an attribute is missing
  kInvalid,      // an attribute is malformed or ambiguous
  kNoRule,       // no rule applies, and one is required
  kDenied,       // over the limit
  kUnavailable,  // the store cannot be asked, or there are no rules yet
};
inline constexpr size_t kRequestOutcomeCount =
    static_cast<size_t>(RequestOutcome::kUnavailable) + 1;

// "allowed", "unmatched", …
std::string_view Name(RequestOutcome outcome);
// One sentence for people about an outcome that does not pass; otherwise empty.
std::string_view DescribeRefusal(RequestOutcome outcome);
inline bool Passes(RequestOutcome outcome) { return outcome <= RequestOutcome::kPassthrough; }

struct Verdict {
  RequestOutcome outcome = RequestOutcome::kUnmatched;
  int status = 200;
  // The tightest limit, if one applies.
  std::optional<wire::RateLimitState> limit{};
  // How long the request must be held before it passes.
  base::Duration wait{0};
  // The wait is longer than the caller has allowed, so the request took no tokens and no place in
  // the queue.
  bool only_peeked = false;
  limiter::Mode mode = limiter::Mode::kMemory;
  // The body of a denial; null: a problem document.
  std::shared_ptr<const rule::Refusal> refusal{};
  // For people: what is wrong with the request, or the error.
  std::string detail{};
  // Whether a token is missing that belongs in Authorization.
  bool lacks_bearer = false;
  // The origin whose pages may read a refusal; empty: none. wire::AllowedOrigin has the meaning.
  std::string cors_origin{};
  bool varies_by_origin = false;
  // Why the token that the request has was refused.
  jwt::Refusal token_refusal = jwt::Refusal::kNone;
};

// The field WWW-Authenticate of an answer (RFC 6750); empty if it has none. No scheme of HTTP
// describes other attributes, such as a header with an API key.
std::string ChallengeOf(const Verdict& verdict);

// Writes the body of a denial that has one of its own. False if it has none.
bool WriteRefusal(const Verdict& verdict, std::string& content_type, std::string& body);

// Calls `emit` for each field of the verdict's limit, and for Retry-After if the client should come
// back. If the request passes, emits the other fields of the listener's form with empty values. A
// refusal has the fields of CORS too.
void EmitFields(const Verdict& verdict, answer::LimitAnswer& answer, base::Instant now,
                wire::EmitField emit);

// Verdicts of one loop, by outcome. Written by the loop's thread, readable by any.
struct alignas(64) Counters {
  std::array<base::Counter, kRequestOutcomeCount> outcomes;
  // Requests with a token that was refused, by reason.
  std::array<base::Counter, jwt::kRefusals> token_refusals;
  // Verdicts that repeated an earlier one because the request had the same idempotency id.
  base::Counter repeated;
  // Requests whose answer was held for a queue. held_begun − held_ended is the number of requests
  // held now.
  base::Counter held_begun;
  base::Counter held_ended;
};

}  // namespace headgate::gate
