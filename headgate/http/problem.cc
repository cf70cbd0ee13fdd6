#include "headgate/http/problem.h"

#include <iterator>

#include "fmt/format.h"
#include "headgate/base/json.h"

namespace headgate::http {
namespace {

struct StatusName {
  int status;
  std::string_view text;
};
constexpr StatusName kStatusNames[] = {
    {100, "Continue"},
    {200, "OK"},
    {201, "Created"},
    {204, "No Content"},
    {304, "Not Modified"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
};

}  // namespace

std::string_view StatusText(int status) {
  for (const StatusName& name : kStatusNames) {
    if (name.status == status) return name.text;
  }
  return "Error";
}

void AnswerProblem(int status, std::string_view detail, std::string_view hint, Response& response) {
  response.status = status;
  response.AddField("Content-Type", "application/problem+json");
  response.body.assign(R"({"type":"about:blank","title":)");
  base::AppendJsonString(StatusText(status), response.body);
  fmt::format_to(std::back_inserter(response.body), R"(,"status":{},"detail":)", status);
  base::AppendJsonString(detail, response.body);
  if (!hint.empty()) {
    response.body.append(R"(,"hint":)");
    base::AppendJsonString(hint, response.body);
  }
  response.body.append("}\n");
}

}  // namespace headgate::http
