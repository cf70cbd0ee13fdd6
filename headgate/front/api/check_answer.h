// A decision as HTTP: the JSON of /v1/check, and the response fields of the tightest limit.
#pragma once

#include <optional>
#include <string>

#include "headgate/limiter/checker.h"
#include "headgate/wire/http_fields.h"

namespace headgate::front::api {

// Appends {"allowed":…,"decisions":[…]}, one decision per descriptor, in order. Times are whole
// milliseconds, rounded up. If no limit applies, `limit` and `remaining` are null; if the cost can
// never fit, `retry_after_ms` is null.
void AppendAnswer(const limiter::Response& response, std::string& out);

// The least wait after which all limits that denied `response` would allow the request; empty if
// one of them never will. Rules in quota mode deny only together, so it is enough that the first of
// them allows. `response` must be denied.
std::optional<base::Duration> RetryAfter(const limiter::Response& response);

// The limit to report to the client: among the enforced limits, the one that denies for longest, or
// else the one with the least remaining. Empty if there is none. `retry_after` is not set, because
// it depends on the whole request.
std::optional<wire::RateLimitState> Tightest(const limiter::Response& response);

}  // namespace headgate::front::api
