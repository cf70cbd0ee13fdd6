// The HTTP response fields that describe a limit:
//
//   RateLimit-Policy: "search";q=100;w=60     draft-ietf-httpapi-ratelimit-headers (-10, -11)
//   RateLimit: "search";r=0;t=20
//   X-RateLimit-Limit: 100                    read by most clients today; seconds from now
//   X-RateLimit-Remaining: 0
//   X-RateLimit-Reset: 20
//   Retry-After: 20                           RFC 9110, 10.2.3
//
// or in the form of older drafts or of a known API.
//
// Seconds are rounded up, so a client that waits as long as it was told is never early. The draft
// may still rename its parameters, so one table in the source holds the names and their order.
// Structured fields follow RFC 9651.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "headgate/base/rate_limit_form.h"
#include "headgate/base/time.h"

namespace headgate::wire {

using base::DialectByName;
using base::QuotaUnit;
using base::RateLimitDialect;

// A limit and its current state.
struct RateLimitState {
  std::string_view policy;  // a name for the limit, the same in every answer about it
  // Appended to the name if the rule has several limits. Has static lifetime.
  std::string_view policy_part{};
  QuotaUnit unit = QuotaUnit::kRequests;
  uint64_t unit_size = 1;    // how many of `unit` are one of `quota`, `limit` and `remaining`
  uint64_t quota = 0;        // requests per window
  base::Duration window{0};  // a field states it only if it is whole seconds; 0: never
  uint64_t limit = 0;        // the most that can be let through at once
  uint64_t remaining = 0;
  // Until all of `limit` is available again. Not stated for a limit of 0.
  base::Duration reset_after{0};
  // Until more than `remaining` is available; absent if that is not known.
  std::optional<base::Duration> more_after{};
  bool denied = false;
  // Identifies the bucket without naming it: `pk` of the draft.
  std::optional<std::array<uint8_t, 9>> partition_key{};
  // The form that the rule of the limit names; absent: the listener's form.
  std::optional<RateLimitDialect> dialect{};
  // If denied: the shortest wait after which the same request can pass; empty if it never can.
  std::optional<base::Duration> retry_after;
};

using EmitField = absl::FunctionRef<void(std::string_view name, std::string_view value)>;

// Calls `emit` for each field that applies to `state` in its own dialect, or else in `dialect`, and
// for Retry-After if the state has it, in every dialect. The values are built in `scratch`, whose
// memory is reused, and are valid only during the call. `now` is the time of day at which the
// decision was made, for dialects that state one.
void EmitRateLimitFields(const RateLimitState& state, RateLimitDialect dialect, base::WallTime now,
                         std::string& scratch, EmitField emit);

// At least 1: a client that is told 0 asks again at once.
uint64_t RetryAfterSeconds(base::Duration retry_after);

// Calls `emit` with an empty value for each field of the dialect, except Retry-After and the fields
// that EmitRateLimitFields has for `state` (null: none). Some proxies copy fields by name and pass
// on the client's own field if Headgate's answer has none.
void EmitEmptyRateLimitFields(RateLimitDialect dialect, const RateLimitState* state,
                              EmitField emit);

// RFC 9651, 4.1.4 and 4.1.6. An integer has at most 15 digits; larger ones are clamped. A string is
// quoted, with " and \ escaped; anything other than printable ASCII is percent-encoded.
void AppendSfInteger(uint64_t value, std::string& out);
void AppendSfString(std::string_view text, std::string& out);

}  // namespace headgate::wire
