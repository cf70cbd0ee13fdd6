// A decision as HTTP: the JSON of /v1/check and the fields of the tightest limit.
#pragma once

#include <optional>
#include <string>

#include "headgate/limiter/checker.h"
#include "headgate/wire/http_fields.h"

namespace headgate::front::api {

// Appends {"allowed":…,"decisions":[…]}, one decision per descriptor, in their order. Times are
// whole milliseconds, rounded up. Where nothing limits, `limit` and `remaining` are null; where the
// cost can never fit, `retry_after_ms` is.
void AppendAnswer(const limiter::Response& response, std::string& out);

// The least wait after which all that denied `response` would allow; nothing where something never
// will. Rules in quota mode deny together, so that the first of them to allow is enough. Not for a
// response that is allowed.
std::optional<base::Duration> RetryAfter(const limiter::Response& response);

// The limit that a client is told of: of those that are enforced, the one that denies for longest,
// or that has least left. Nothing where there is none. `retry_after` is left out: it is the whole
// request's.
std::optional<wire::RateLimitState> Tightest(const limiter::Response& response);

}  // namespace headgate::front::api
