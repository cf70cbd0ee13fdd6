// A decision as the JSON of /v1/check.
#pragma once

#include <string>

#include "headgate/limiter/checker.h"

namespace headgate::front::api {

// Appends {"allowed":…,"decisions":[…]}, one decision per descriptor, in order. Times are whole
// milliseconds, rounded up. If no limit applies, `limit` and `remaining` are null; if the cost can
// never fit, `retry_after_ms` is null.
void AppendAnswer(const limiter::Response& response, std::string& out);

// The same without the braces around it and the line's end.
void AppendAnswerFields(const limiter::Response& response, std::string& out);

}  // namespace headgate::front::api
