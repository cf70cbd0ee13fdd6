// Errors as people and programs read them: application/problem+json (RFC 9457).
#pragma once

#include <string>
#include <string_view>

#include "headgate/http/handler.h"

namespace headgate::http {

// "Not Found"; "Error" for a status that nobody here answers.
std::string_view StatusText(int status);

// Makes `response` the problem document of `status`. `detail` says what was wrong with this
// request, `hint` (may be empty) what to do about it. Fields that were added before stay.
void AnswerProblem(int status, std::string_view detail, std::string_view hint, Response& response);

}  // namespace headgate::http
