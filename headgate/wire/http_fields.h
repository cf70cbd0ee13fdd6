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
#include "headgate/base/time.h"

namespace headgate::wire {

// The fields that clients of an API expect.
enum class RateLimitDialect : uint8_t {
  kAll,      // kDraft, and X-RateLimit-* with seconds from now
  kDraft,    // RateLimit-Policy and RateLimit as structured fields: draft 8 and later
  kDraft7,   // RateLimit-Policy: 100;w=60, RateLimit: limit=100, remaining=50, reset=30
  kDraft6,   // RateLimit-Policy: 100;w=60, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset
  kDraft3,   // RateLimit-Limit: 100, 100;w=60, RateLimit-Remaining, RateLimit-Reset
  kGithub,   // X-RateLimit-*, also Used and Resource; Reset is Unix time
  kTwitter,  // x-rate-limit-*; reset is Unix time
  kNone,
};

// "all", "draft", "draft-7", …
std::string_view Name(RateLimitDialect dialect);
std::optional<RateLimitDialect> DialectByName(std::string_view name);

// A limit and its current state.
struct RateLimitState {
  std::string_view policy;   // a name for the limit, the same in every answer about it
  uint64_t quota = 0;        // requests per window
  base::Duration window{0};  // stated only if it is whole seconds; 0: not stated
  uint64_t limit = 0;        // the most that can be let through at once
  uint64_t remaining = 0;
  // Until all of `limit` is available again. Not stated for a limit of 0.
  base::Duration reset_after{0};
  bool denied = false;
  // Identifies the bucket without naming it: `pk` of the draft.
  std::optional<std::array<uint8_t, 9>> partition_key{};
  // If denied: the shortest wait after which the same request can pass; empty if it never can.
  std::optional<base::Duration> retry_after;
};

using EmitField = absl::FunctionRef<void(std::string_view name, std::string_view value)>;

// Calls `emit` for each field of the dialect that applies to `state`, and for Retry-After if the
// state has it, in every dialect. The values are built in `scratch`, whose memory is reused, and
// are valid only during the call. `now` is the time of day at which the decision
// was made, for dialects that state one.
void EmitRateLimitFields(const RateLimitState& state, RateLimitDialect dialect, base::WallTime now,
                         std::string& scratch, EmitField emit);

// Calls `emit` with an empty value for each field of the dialect, except Retry-After. Some proxies
// copy fields by name and pass on the client's own field if Headgate's answer has none.
void EmitEmptyRateLimitFields(RateLimitDialect dialect, EmitField emit);

// RFC 9651, 4.1.4 and 4.1.6. An integer has at most 15 digits; larger ones are clamped. A string is
// quoted, with " and \ escaped; anything other than printable ASCII is percent-encoded.
void AppendSfInteger(uint64_t value, std::string& out);
void AppendSfString(std::string_view text, std::string& out);

}  // namespace headgate::wire
