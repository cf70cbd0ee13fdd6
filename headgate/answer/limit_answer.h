// The part of an HTTP answer that is about limits: the fields of the tightest limit, an honest
// Retry-After, and how the decision was made.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/base/random.h"
#include "headgate/http/handler.h"
#include "headgate/limiter/checker.h"
#include "headgate/wire/http_fields.h"

namespace headgate::answer {

struct LimitAnswerOptions {
  wire::RateLimitDialect dialect = wire::RateLimitDialect::kAll;
  // Retry-After is longer by a random part, at most this percentage, so that clients that were
  // denied together do not all come back together. Never shorter. Raise it if they do.
  uint32_t retry_after_jitter_percent = 0;
  // The longest random part; 0: no bound beside the percentage. Raise it if long waits end
  // together.
  base::Duration retry_after_jitter_max{0};
  // The body of refusals of rules and mappings without one of their own; null: a problem document.
  std::shared_ptr<const rule::Refusal> refusal{};
  // If not empty: the fields name the bucket by a hash with this secret (`pk`), so that a client
  // with several keys can tell its limits apart. The same secret gives the same hashes everywhere.
  std::string partition_secret{};
  // The clock for dialects that state a time of day; null: the time of decisions.
  const base::Clock* clock = nullptr;
};

// In seconds: a client that is refused because the store is unreachable, or because there are no
// rules yet, should not retry at once.
inline constexpr std::string_view kUnavailableRetryAfter = "1";

// The weakest mode of the decisions.
limiter::Mode ModeOf(const limiter::Response& decided);

// The question of the conversation that the request belongs to. It is open if the request waits.
limiter::Question& QuestionOf(const http::Request& request);

// The values that the body of a refusal has for a limit.
rule::Refused RefusedOf(const wire::RateLimitState& state);

// One per loop; not thread-safe.
class LimitAnswer {
 public:
  // `checker` must outlive this object.
  LimitAnswer(limiter::Checker& checker, const LimitAnswerOptions& options)
      : checker_(checker), options_(options) {}

  // The state of the tightest limit; absent if no limit applies. `cost_default` is the cost of
  // descriptors without one. Valid as long as `response`.
  std::optional<wire::RateLimitState> StateOf(const limiter::Request& request,
                                              uint64_t cost_default,
                                              const limiter::Response& response, base::Instant now);

  // Calls `emit` for the fields of `state` in its own dialect, or else in that of the options.
  void EmitFields(const wire::RateLimitState& state, base::Instant now, wire::EmitField emit);
  // Adds X-RateLimit-Mode, unless the decision was made from this process's memory as usual.
  static void AddMode(limiter::Mode mode, http::Response& response);

  // Turns `response` into the error for a check that failed. `status_unavailable` is the status for
  // a store that cannot be asked.
  void AnswerError(const absl::Status& status, int status_unavailable,
                   http::Response& response) const;

  wire::RateLimitDialect dialect() const { return options_.dialect; }
  const std::shared_ptr<const rule::Refusal>& refusal() const { return options_.refusal; }

 private:
  std::optional<base::Duration> HonestRetryAfter(const limiter::Request& request,
                                                 uint64_t cost_default,
                                                 const limiter::Response& response,
                                                 base::Instant now);

  // HMAC-SHA-256 of the descriptor, truncated.
  std::array<uint8_t, 9> PartitionKey(std::string_view domain, const rule::Descriptor& descriptor);

  limiter::Checker& checker_;
  const LimitAnswerOptions options_;
  limiter::Response peeked_;
  std::vector<rule::Descriptor> peek_descriptors_;
  std::string scratch_;
  base::Random random_{0x9e3779b97f4a7c15};
};

}  // namespace headgate::answer
