// The HTTP response fields that describe a limit:
//
//   RateLimit-Policy: "search";q=100;w=60     draft-ietf-httpapi-ratelimit-headers (-10, -11)
//   RateLimit: "search";r=0;t=20
//   X-RateLimit-Limit: 100                    read by most clients today; seconds from now
//   X-RateLimit-Remaining: 0
//   X-RateLimit-Reset: 20
//   Retry-After: 20                           RFC 9110, 10.2.3
//
// Seconds are rounded up, so a client that waits as long as it was told is never early. The draft
// may still rename its parameters, so one table in the source holds the names and their order.
// Structured fields follow RFC 9651.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "headgate/base/time.h"

namespace headgate::wire {

enum class RateLimitField : uint8_t {
  kPolicy,
  kRateLimit,
  kLimit,
  kRemaining,
  kReset,
  kRetryAfter
};

// The set of fields that a response carries.
class RateLimitFieldSet {
 public:
  constexpr RateLimitFieldSet() = default;
  constexpr RateLimitFieldSet(std::initializer_list<RateLimitField> fields) {
    for (const RateLimitField field : fields) bits_ |= Bit(field);
  }
  static constexpr RateLimitFieldSet All() {
    using enum RateLimitField;
    return {kPolicy, kRateLimit, kLimit, kRemaining, kReset, kRetryAfter};
  }
  constexpr bool Has(RateLimitField field) const { return (bits_ & Bit(field)) != 0; }
  constexpr bool operator==(const RateLimitFieldSet&) const = default;

 private:
  static constexpr uint32_t Bit(RateLimitField field) { return 1u << static_cast<uint32_t>(field); }
  uint32_t bits_ = 0;
};

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
  // If denied: the shortest wait after which the same request can pass; empty if it never can.
  std::optional<base::Duration> retry_after;
};

// Calls `emit` for each selected field that applies to `state`. The values are built in `scratch`,
// whose memory is reused, and are valid only during the call.
void EmitRateLimitFields(
    const RateLimitState& state, RateLimitFieldSet selected, std::string& scratch,
    absl::FunctionRef<void(std::string_view name, std::string_view value)> emit);

// RFC 9651, 4.1.4 and 4.1.6. An integer has at most 15 digits; larger ones are clamped. A string is
// quoted, with " and \ escaped; anything other than printable ASCII is percent-encoded.
void AppendSfInteger(uint64_t value, std::string& out);
void AppendSfString(std::string_view text, std::string& out);

}  // namespace headgate::wire
