// The forms in which an answer over HTTP can describe a limit, by name, and the units in which a
// limit counts. wire/http_fields.h writes them; settings, rule files and mappings name them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headgate::base {

// The fields that clients of an API expect.
enum class RateLimitDialect : uint8_t {
  kAll,        // kDraft, and X-RateLimit-* with seconds from now
  kDraft,      // RateLimit-Policy and RateLimit as structured fields: draft 8 and later
  kDraft7,     // RateLimit-Policy: 100;w=60, RateLimit: limit=100, remaining=50, reset=30
  kDraft6,     // RateLimit-Policy: 100;w=60, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset
  kDraft3,     // RateLimit-Limit: 100, 100;w=60, RateLimit-Remaining, RateLimit-Reset
  kGithub,     // X-RateLimit-*, also Used and Resource; Reset is Unix time
  kTwitter,    // x-rate-limit-*; reset is Unix time
  kOpenai,     // x-ratelimit-limit-requests or -tokens, …; reset is a duration such as 6m0s
  kAnthropic,  // anthropic-ratelimit-requests-limit, …; reset is a time such as
               // 2026-11-28T18:00:00Z
  kNone,
};

// "all", "draft", "draft-7", …
std::string_view Name(RateLimitDialect dialect);
std::optional<RateLimitDialect> DialectByName(std::string_view name);
// For people: "all, draft, …, anthropic or none".
std::string DialectNames();

// The things that a limit can count: the quota units of the draft, and tokens.
enum class QuotaUnit : uint8_t {
  kRequests,
  kTokens,
  kInputTokens,
  kOutputTokens,
  kContentBytes,
  kConcurrentRequests,
};

// "requests", "tokens", "input-tokens", …
std::string_view Name(QuotaUnit unit);

}  // namespace headgate::base
