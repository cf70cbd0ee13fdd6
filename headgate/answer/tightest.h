// The limit of a decision that a client should know about.
#pragma once

#include <memory>
#include <optional>

#include "headgate/base/time.h"
#include "headgate/limiter/checker.h"
#include "headgate/wire/http_fields.h"

namespace headgate::answer {

// The least wait after which all limits that denied `response` would allow the request; empty if
// one of them never will. Rules in quota mode deny only together, so it is enough that the first of
// them allows. `response` must be denied.
std::optional<base::Duration> RetryAfter(const limiter::Response& response);

// The limit to report to the client: among the enforced limits, the one that denies for longest, or
// else the one with the least remaining. Empty if there is none. `retry_after` is not set, because
// it depends on the whole request.
std::optional<wire::RateLimitState> Tightest(const limiter::Response& response);
// The body that the rule of a refusal's tightest limit has; null if it has none.
std::shared_ptr<const rule::Refusal> RefusalOf(const limiter::Response& response);
// The position of the descriptor whose limit that is.
std::optional<size_t> TightestDescriptor(const limiter::Response& response);

}  // namespace headgate::answer
