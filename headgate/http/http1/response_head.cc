#include "headgate/http/http1/response_head.h"

#include <algorithm>

#include "headgate/base/text.h"
#include "headgate/http/http1/head_fields.h"

namespace headgate::http::http1 {
namespace {

using base::EqualsIgnoreCase;
using Kind = BodyLength::Kind;

constexpr Refusal Invalid(std::string_view detail) { return {502, detail, {}}; }

constexpr Refusal kStatusLine = Invalid("the status line is not HTTP/1.1 STATUS REASON");

// HTTP/1.1 SP 3DIGIT SP reason, which may be empty.
Refusal ReadStatusLine(std::string_view line, int& status, bool& http11) {
  constexpr size_t kReasonAt = 13;
  if (line.size() < kReasonAt) return kStatusLine;
  http11 = line.starts_with("HTTP/1.1 ");
  if (!http11 && !line.starts_with("HTTP/1.0 ")) return kStatusLine;
  const std::string_view digits = line.substr(9, 3);
  if (!std::all_of(digits.begin(), digits.end(), base::IsDigit) || digits.front() == '0')
    return kStatusLine;
  if (line[kReasonAt - 1] != ' ') return kStatusLine;
  const std::string_view reason = line.substr(kReasonAt);
  const auto is_allowed = [](char c) { return c == '\t' || !base::IsControl(c); };
  if (!std::all_of(reason.begin(), reason.end(), is_allowed)) return kStatusLine;
  status = (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
  return {};
}

Refusal JudgeInterim(int status, bool http11, const Answered& request,
                     const ConnectionFields& connection, ResponseHead& response,
                     ResponseBody& body) {
  if (connection.chunked || connection.length)
    return Invalid("an informational response states the length of a body");
  if (status != 101) return {};
  if (request.protocol.empty() || !http11 || !connection.upgrade ||
      !EqualsIgnoreCase(connection.upgrade_to, request.protocol)) {
    return Invalid("the server switches to a protocol that nobody asked for");
  }
  response.body.kind = Kind::kTunnel;
  body.framing = BodyFraming::kUntilEnd;
  return {};
}

void JudgeBody(const Answered& request, const ConnectionFields& connection, ResponseHead& response,
               ResponseBody& body) {
  if (connection.chunked) {
    response.body = {.kind = Kind::kUnsized};
    body.framing = BodyFraming::kChunked;
  } else if (connection.length) {
    response.body = {.kind = Kind::kSized, .bytes = *connection.length};
    body.framing = BodyFraming::kSized;
    body.bytes = *connection.length;
  } else if (!request.head_only && response.status != 304) {
    response.body = {.kind = Kind::kUnsized};
    body.framing = BodyFraming::kUntilEnd;
    body.keep_alive = false;
  }
  if (request.head_only || response.status == 304) body.framing = BodyFraming::kNone;
}

}  // namespace

Refusal ReadResponseHead(std::string_view head, const Answered& request, const Bounds& bounds,
                         ResponseHead& response, ResponseBody& body) {
  const size_t line_end = head.find('\r');
  bool http11 = false;
  if (const Refusal refusal = ReadStatusLine(head.substr(0, line_end), response.status, http11))
    return refusal;
  response.fields.Clear();
  response.body = {};
  body = {};
  ConnectionFields connection;
  const std::string_view lines = head.substr(line_end + 2, head.size() - line_end - 4);
  if (const Refusal refusal = ReadFieldLines(lines, bounds, {}, false, response.fields, connection))
    return refusal;
  if (connection.chunked && !http11) return Invalid("HTTP/1.0 has no Transfer-Encoding");
  body.keep_alive = !connection.close && (http11 || connection.keep_alive);

  const int status = response.status;
  if (status < 200) return JudgeInterim(status, http11, request, connection, response, body);
  if (status == 204) {
    // Zero is common, and cannot be misunderstood.
    if (connection.chunked || connection.length.value_or(0) > 0)
      return Invalid("a response without content states the length of a body");
    return {};
  }
  JudgeBody(request, connection, response, body);
  return {};
}

}  // namespace headgate::http::http1
