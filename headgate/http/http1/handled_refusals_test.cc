// The requests that a handler's application refuses before the handler sees them. The session's own
// refusals are in request_framing_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "headgate/http/http1/handler_dialogue.h"

namespace headgate::http::http1 {
namespace handled_refusals_test {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct BadRequest {
  std::string_view name;
  std::string input;
  int status;
  std::string_view detail;
};

class Refused : public ::testing::TestWithParam<BadRequest> {};

TEST_P(Refused, WithItsStatusAndReasonAndTheConnectionCloses) {
  const BadRequest& bad = GetParam();
  for (size_t cut = 0; cut <= bad.input.size(); ++cut) {
    Dialogue d({}, {.body_bytes_max = 10});
    std::string answer = d.Say(bad.input.substr(0, cut));
    if (!d.progress.close) answer += d.Say(bad.input.substr(cut));
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 " + std::to_string(bad.status) + " "));
    EXPECT_THAT(answer, HasSubstr("Content-Type: application/problem+json\r\n"));
    EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
    EXPECT_THAT(answer, HasSubstr("\"detail\":\"" + std::string(bad.detail) + "\""));
    EXPECT_THAT(d.handler.asked, IsEmpty());
    EXPECT_TRUE(d.progress.close);
  }
}

constexpr std::string_view kName = "this server does not know the name in Host";
constexpr std::string_view kContent = "GET and HEAD requests have no content";
constexpr std::string_view kTooLarge = "the body is too large";

const BadRequest kBadRequests[] = {
    {"foreign_host", LocalGet("Host: evil.example:8080\r\n"), 421, kName},
    {"foreign_target", "GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421,
     kName},
    {"foreign_host_in_http_1_0", "GET / HTTP/1.0\r\nHost: evil.example\r\n\r\n", 421, kName},
    {"get_with_content", LocalGet("Host: localhost\r\nContent-Length: 5\r\n") + "hello", 400,
     kContent},
    {"get_with_chunks", LocalGet("Host: localhost\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n",
     400, kContent},
    {"too_large", LocalPost("Content-Length: 11\r\n"), 413, kTooLarge},
    {"too_large_though_it_waits", LocalPost("Content-Length: 11\r\nExpect: 100-continue\r\n"), 413,
     kTooLarge},
    {"chunk_too_large",
     LocalPost("Transfer-Encoding: chunked\r\n", "b\r\n01234567890\r\n0\r\n\r\n"), 413, kTooLarge},
    {"chunks_too_large",
     LocalPost("Transfer-Encoding: chunked\r\n", "6\r\n012345\r\n5\r\n01234\r\n0\r\n\r\n"), 413,
     kTooLarge},
};

INSTANTIATE_TEST_SUITE_P(Handler, Refused, ::testing::ValuesIn(kBadRequests),
                         [](const auto& bad) { return std::string(bad.param.name); });

TEST(HandlerRefusal, IsWholeAndHasAHint) {
  Dialogue d;
  const std::string body =
      R"({"type":"about:blank","title":"Misdirected Request","status":421,)"
      R"("detail":"this server does not know the name in Host",)"
      R"("hint":"use an address or localhost, or start the server with --known-host NAME"})"
      "\n";
  EXPECT_EQ(d.Say(LocalGet("Host: evil.example\r\n")),
            "HTTP/1.1 421 Misdirected Request\r\n"
            "Content-Type: application/problem+json\r\n"
            "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
            "Content-Length: " +
                std::to_string(body.size()) +
                "\r\n"
                "Connection: close\r\n"
                "\r\n" +
                body);
}

TEST(HandlerRefusal, OfAHeadHasNoContent) {
  Dialogue d;
  EXPECT_THAT(d.Say("HEAD / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), EndsWith("\r\n\r\n"));
}

// The refusal of HEAD has no content, so it does not fit into the table.
TEST(HandlerRefusal, OfHeadWithContent) {
  for (const std::string_view length : {"Content-Length: 5", "Transfer-Encoding: chunked"}) {
    Dialogue d;
    const std::string answer =
        d.Say("HEAD / HTTP/1.1\r\nHost: localhost\r\n" + std::string(length) + "\r\n\r\nhello");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 400 "));
    EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
    EXPECT_TRUE(d.progress.close);
    EXPECT_THAT(d.handler.asked, IsEmpty());
  }
}

}  // namespace handled_refusals_test
}  // namespace headgate::http::http1
