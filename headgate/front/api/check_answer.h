// A decision as the JSON of /v1/check.
#pragma once

#include <string>
#include <string_view>

#include "headgate/limiter/checker.h"

namespace headgate::front::api {

// Appends {"allowed":…,"decisions":[…]}, one decision per descriptor, in order. Times are whole
// milliseconds, rounded up. If no limit applies, `limit` and `remaining` are null; if the cost can
// never fit, `retry_after_ms` is null. If `hint` is not empty, it is a member too.
void AppendAnswer(const limiter::Response& response, std::string& out, std::string_view hint = {});

// The same without the braces around it and the line's end.
void AppendAnswerFields(const limiter::Response& response, std::string& out,
                        std::string_view hint = {});

// The hint for a client whose request passed only because no rule has its domain; empty for every
// other request. `response` is the checker's answer to `request`. Does not allocate.
std::string_view HintOnDomain(const limiter::Request& request, const limiter::Response& response,
                              limiter::Checker& checker);

}  // namespace headgate::front::api
