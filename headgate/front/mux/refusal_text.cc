#include "headgate/front/mux/refusal_text.h"

#include <fmt/format.h>

#include <string>

namespace headgate::front::mux {
namespace {

using namespace std::string_view_literals;

// An empty SETTINGS frame, then GOAWAY with HTTP_1_1_REQUIRED (RFC 9113, 6.8 and 7).
constexpr std::string_view kHttp2GoAway =
    "\0\0\0\4\0\0\0\0\0"
    "\0\0\10\7\0\0\0\0\0\0\0\0\0\0\0\0\15"sv;
// The alert "protocol_version" (RFC 8446, 6.2).
constexpr std::string_view kTlsAlert = "\25\3\1\0\2\2\106"sv;

std::string Unavailable(std::string_view problem) {
  return fmt::format(
      "HTTP/1.1 503 Service Unavailable\r\nContent-Length: {}\r\nConnection: close\r\nRetry-After: "
      "1\r\n"
      "Content-Type: application/problem+json\r\n\r\n{}",
      problem.size(), problem);
}

}  // namespace

std::string_view WrongProtocolText(Protocol protocol) {
  switch (protocol) {
    case Protocol::kResp:
      return "-ERR this address speaks HTTP only\r\n";
    case Protocol::kHttp1:
      return "HTTP/1.1 421 Misdirected Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    case Protocol::kHttp2:
      return kHttp2GoAway;
    case Protocol::kTls:
      return kTlsAlert;
  }
  return "";
}

std::string_view FullHouseText(Protocol protocol) {
  static const std::string http = Unavailable(
      R"({"type":"about:blank","title":"Service Unavailable","status":503,"detail":"max number of clients reached",)"
      R"("hint":"try again later; the server's log names the limit that was reached"})"
      "\n");
  switch (protocol) {
    case Protocol::kResp:
      return "-ERR max number of clients reached\r\n";
    case Protocol::kHttp1:
      return http;
    case Protocol::kHttp2:
    case Protocol::kTls:
      break;
  }
  return WrongProtocolText(protocol);
}

}  // namespace headgate::front::mux
