// The answer of forward-auth to a proxy, before it is written in the proxy's protocol.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/base/counter.h"
#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/front/answer/limit_answer.h"
#include "headgate/limiter/mode.h"
#include "headgate/wire/http_fields.h"

namespace headgate::front::auth {

enum class Outcome : uint8_t {
  kAllowed,      // within all limits
  kUnmatched,    // no mapping fits; passes
  kExempt,       // passes
  kUntrusted,    // the proxy is not one of trusted_proxies
  kRefused,      // named by a list of `refuse`
  kMissing,      // an attribute is missing
  kInvalid,      // an attribute is malformed or ambiguous
  kNoRule,       // no rule applies, and one is required
  kDenied,       // over the limit
  kUnavailable,  // the store cannot be asked, or there are no rules yet
};
inline constexpr size_t kOutcomeCount = static_cast<size_t>(Outcome::kUnavailable) + 1;

// "allowed", "unmatched", …
std::string_view Name(Outcome outcome);
// One sentence for people about an outcome that does not pass; otherwise empty.
std::string_view DescribeRefusal(Outcome outcome);
inline bool Passes(Outcome outcome) { return outcome <= Outcome::kExempt; }

struct Verdict {
  Outcome outcome = Outcome::kUnmatched;
  int status = 200;
  // The tightest limit, if one applies.
  std::optional<wire::RateLimitState> limit{};
  // How long the request must be held before it passes.
  base::Duration wait{0};
  // The wait is longer than the caller has allowed, so the request has taken nothing, and has no
  // turn.
  bool only_looked_at = false;
  limiter::Mode mode = limiter::Mode::kMemory;
  // For people: what is wrong with the request, or the error.
  std::string detail{};
  // Whether a token is missing that belongs into Authorization.
  bool lacks_bearer = false;
};

// Calls `emit` for each field of the verdict's limit, with an empty value if no limit applies, and
// for Retry-After if the client should come back.
void EmitFields(const Verdict& verdict, answer::LimitAnswer& answer, base::Instant now,
                wire::EmitField emit);

// Verdicts of one loop, by outcome. Written by the loop's thread, readable by any.
struct alignas(64) Counters {
  std::array<base::Counter, kOutcomeCount> outcomes;
  // Verdicts that repeated an earlier one because the request had the same idempotency id.
  base::Counter repeated;
  // Requests whose answer is held for a queue, now.
  base::Counter held_begun;
  base::Counter held_ended;
};

}  // namespace headgate::front::auth
