// Errors for people and programs: application/problem+json (RFC 9457).
#pragma once

#include <string>
#include <string_view>

#include "headgate/http/handler.h"

namespace headgate::http {

// "Not Found", for example; "Error" for a status that is not registered.
std::string_view StatusText(int status);

// Turns `response` into the problem document of `status`. `detail` says what is wrong with this
// request; `hint` (may be empty) says how to fix it. Fields that were added before are kept.
void AnswerProblem(int status, std::string_view detail, std::string_view hint, Response& response);

}  // namespace headgate::http
