
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "headgate/http/http1/handler_dialogue.h"

namespace headgate::http::http1 {
namespace handled_requests_test {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// ---- Answers

TEST(HttpSession, AnswersARequest) {
  Dialogue d;
  EXPECT_EQ(d.Say(kLocalPost),
            "HTTP/1.1 200 OK\r\n"
            "X-Answer: yes\r\n"
            "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
            "Content-Length: 5\r\n"
            "\r\n"
            "hello");
  EXPECT_THAT(d.handler.asked, ElementsAre("POST /x hello"));
  EXPECT_FALSE(d.progress.close);
  EXPECT_FALSE(d.progress.mid_request);
}

// The time of day was two hours behind and has been set.
TEST(HttpSession, DateIsTheTimeOfDay) {
  base::ManualClock clock{base::WallTime::FromNanos(kNow.ns)};
  Dialogue d({.clock = &clock});
  EXPECT_THAT(d.Say(kLocalGet), HasSubstr("Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
  clock.StepWall(std::chrono::hours(2));
  EXPECT_THAT(d.Say(kLocalGet), HasSubstr("Date: Sun, 06 Nov 1994 10:49:37 GMT\r\n"));
}

TEST(HttpSession, AnswersPipelinedRequestsInOrder) {
  Dialogue d;
  std::string input;
  for (int i = 0; i < 100; ++i) input.append(kLocalPost).append(kLocalGet);
  d.Say(input);
  ASSERT_EQ(d.handler.asked.size(), 200);
  EXPECT_EQ(d.handler.asked[198], "POST /x hello");
  EXPECT_EQ(d.handler.asked[199], "GET /x?y=1 ");
}

TEST(HttpSession, HeadHasTheLengthAndNotTheContent) {
  Dialogue d;
  d.handler.answer = "content";
  const std::string answer = d.Say("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 7\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

// A connection whose output buffer overflows is closed, so no single step may write a long answer.
TEST(HttpSession, ALongAnswerIsWrittenInParts) {
  Dialogue d;
  d.handler.answer = std::string(20 << 20, 'x') + "end";
  d.rest = kLocalGet;
  std::string answer;
  do {
    std::string output;
    d.progress = d.session.OnBytes(d.rest, output, kNow);
    d.rest.erase(0, d.progress.consumed);
    EXPECT_LE(output.size(), size_t{2} << 20);
    answer += output;
  } while (d.progress.more);
  EXPECT_THAT(answer.substr(0, 200), HasSubstr("Content-Length: 20971523\r\n"));
  EXPECT_EQ(answer.size(), answer.find("\r\n\r\n") + 4 + 20971523);
  EXPECT_TRUE(answer.ends_with("xend"));
  d.handler.answer = "short";
  EXPECT_THAT(d.Say(kLocalGet), EndsWith("\r\n\r\nshort"));
}

TEST(HttpSession, NoContentHasNoLength) {
  Dialogue d;
  d.handler.status = 204;
  d.handler.answer = "ignored";
  const std::string answer = d.Say(kLocalGet);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 204 No Content\r\n"));
  EXPECT_THAT(answer, Not(HasSubstr("Content-Length")));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST(HttpSession, KeepsTheConnectionAsTheVersionHasIt) {
  const auto closes = [](std::string_view version, std::string_view connection) {
    Dialogue d;
    const std::string answer = d.Say("GET / HTTP/" + std::string(version) +
                                     "\r\nHost: localhost\r\n" + std::string(connection) + "\r\n");
    EXPECT_EQ(answer.find("Connection: close\r\n") != std::string::npos, d.progress.close);
    EXPECT_EQ(answer.find("Connection: keep-alive\r\n") != std::string::npos,
              version == "1.0" && !d.progress.close);
    EXPECT_FALSE(d.progress.protocol_error);
    return d.progress.close;
  };
  EXPECT_FALSE(closes("1.1", ""));
  EXPECT_FALSE(closes("1.1", "Connection: keep-alive\r\n"));
  EXPECT_TRUE(closes("1.1", "Connection: close\r\n"));
  EXPECT_TRUE(closes("1.1", "Connection: foo, Close\r\n"));
  EXPECT_TRUE(closes("1.0", ""));
  EXPECT_FALSE(closes("1.0", "Connection: Keep-Alive\r\n"));
  EXPECT_TRUE(closes("1.0", "Connection: keep-alive, close\r\n"));
}

TEST(HttpSession, NothingIsAnsweredBehindTheLastAnswer) {
  Dialogue d;
  d.Say(
      "GET /1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\nGET /2 HTTP/1.1\r\nHost: "
      "localhost\r\n\r\n");
  EXPECT_THAT(d.handler.asked, ElementsAre("GET /1 "));
  EXPECT_TRUE(d.progress.close);
}

TEST(HttpSession, ADrainClosesWithTheNextAnswer) {
  Dialogue d;
  EXPECT_THAT(d.Say(kLocalGet), Not(HasSubstr("Connection")));
  EXPECT_EQ(d.Say(kLocalPost.substr(0, 60)), "");
  d.session.OnDrain();
  EXPECT_THAT(d.Say(kLocalPost.substr(60)), HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(d.handler.asked, ElementsAre("GET /x?y=1 ", "POST /x hello"));
  EXPECT_TRUE(d.progress.close);
  EXPECT_FALSE(d.progress.protocol_error);
}

TEST(HttpSession, PausesWhereAnswersPileUp) {
  Dialogue d;
  d.handler.answer.assign(net::Session::kOutputPauseBytes, 'x');
  const std::string input = std::string(kLocalGet) + std::string(kLocalGet);
  std::string output;
  const net::Session::Progress first = d.session.OnBytes(input, output, kNow);
  EXPECT_EQ(first.consumed, kLocalGet.size());
  EXPECT_TRUE(first.more);
  EXPECT_EQ(d.handler.asked.size(), 1);
  output.clear();
  const net::Session::Progress second =
      d.session.OnBytes(std::span(input).subspan(first.consumed), output, kNow);
  EXPECT_EQ(second.consumed, kLocalGet.size());
  EXPECT_EQ(d.handler.asked.size(), 2);
}

// ---- Requests

TEST(HttpSession, TakesARequestSplitAnywhere) {
  const std::string input =
      "\r\nPOST /a HTTP/1.1\r\nHost: localhost\r\nX-Custom: v\r\nContent-Length: 5\r\n\r\nhello"
      "POST /b HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nX-Custom: w\r\n\r\n"
      "3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nX-Trailer: x\r\n\r\n"
      "POST /c HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
      "GET /d HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  Dialogue whole;
  const std::string expected = whole.Say(input);
  ASSERT_THAT(whole.handler.asked,
              ElementsAre("POST /a hello", "POST /b abcde", "POST /c ", "GET /d "));
  ASSERT_THAT(whole.handler.custom, ElementsAre("v", "w", "", ""));

  for (size_t split = 0; split <= input.size(); ++split) {
    Dialogue d;
    std::string output = d.Say(std::string_view(input).substr(0, split));
    if (!d.progress.close) output += d.Say(std::string_view(input).substr(split));
    EXPECT_EQ(output, expected) << "split at " << split;
    EXPECT_EQ(d.handler.asked, whole.handler.asked) << "split at " << split;
    EXPECT_EQ(d.handler.custom, whole.handler.custom) << "split at " << split;
  }
  Dialogue bytes;
  std::string output;
  for (const char byte : input) output += bytes.Say({&byte, 1});
  EXPECT_EQ(output, expected);
  EXPECT_EQ(bytes.handler.asked, whole.handler.asked);
}

TEST(HttpSession, SaysWhetherARequestIsUnderWay) {
  Dialogue d;
  d.Say("\r\n");
  EXPECT_FALSE(d.progress.mid_request);
  d.Say("G");
  EXPECT_TRUE(d.progress.mid_request);
  d.Say(kLocalGet.substr(1));
  EXPECT_FALSE(d.progress.mid_request);
  d.Say(kLocalPost.substr(0, kLocalPost.size() - 5));
  EXPECT_TRUE(d.progress.mid_request);
  EXPECT_EQ(d.progress.consumed, kLocalPost.size() - 5);
  d.Say("hello");
  EXPECT_FALSE(d.progress.mid_request);
}

TEST(HttpSession, AsksForABodyThatWaitsForThat) {
  Dialogue d;
  const std::string head =
      "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-Continue\r\n\r\n";
  EXPECT_EQ(d.Say(head), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_THAT(d.Say("hello"), StartsWith("HTTP/1.1 200 OK\r\n"));
  constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  EXPECT_THAT(d.Say(head + "hello"), StartsWith(std::string(kContinue) + "HTTP/1.1 200 OK\r\n"));
  EXPECT_EQ(d.Say(head + "hel"), kContinue);
}

TEST(HttpSession, TakesTheTargetOutOfAnAbsoluteOne) {
  Dialogue d;
  d.Say("GET http://localhost:8080/x?y HTTP/1.1\r\nHost: localhost:8080\r\n\r\n");
  EXPECT_THAT(d.handler.asked, ElementsAre("GET /x?y "));
}

TEST(HttpSession, Http10NeedsNoHost) {
  Dialogue d;
  EXPECT_THAT(d.Say("GET /healthz HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

// RFC 9112, 6.3: a request without Content-Length and Transfer-Encoding has no content.
TEST(HttpSession, TakesAnyMethodWithoutALength) {
  Dialogue d;
  for (const std::string_view method : {"POST", "PUT", "PATCH", "DELETE"}) {
    EXPECT_THAT(d.Say(std::string(method) + " / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
                StartsWith("HTTP/1.1 200 OK\r\n"))
        << method;
  }
}

TEST(HttpSession, TakesGetWithALengthOfZero) {
  Dialogue d;
  EXPECT_THAT(d.Say(LocalGet("Host: localhost\r\nContent-Length: 0\r\n")),
              StartsWith("HTTP/1.1 200 OK\r\n"));
}

// An absolute target without a path stands for "/" (RFC 9110, 4.2.3), even if its body comes later.
TEST(HttpSession, TakesAnAbsoluteTargetWithoutAPath) {
  const std::pair<std::string, std::string> cases[] = {{"http://localhost", "/"},
                                                       {"http://localhost?q=1", "/?q=1"}};
  for (const auto& [target, path] : cases) {
    Dialogue d;
    EXPECT_THAT(d.Say("GET " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n"),
                StartsWith("HTTP/1.1 200 OK\r\n"));
    std::string output =
        d.Say("POST " + target + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhe");
    output += d.Say("llo");
    EXPECT_THAT(output, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(d.handler.asked, ElementsAre("GET " + path + " ", "POST " + path + " hello"));
  }
}

TEST(HttpSession, TakesAChunkedBodyJustInItsBounds) {
  const std::string half(100, 'e');
  const std::string trailer = "A: b\r\nB:\t\xff\r\n\r\n";
  const Bounds bounds = {.line_bytes_max = 100,
                         .head_bytes_max = 202,
                         .chunk_extra_bytes_max = 202,
                         .fields_max = 2,
                         .body_bytes_max = 5};
  const std::string request =
      "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3;" + half +
      "\r\nabc\r\n0000000000000002;" + half + "\r\nde\r\n0\r\n" + trailer;
  for (size_t cut = 0; cut <= request.size(); ++cut) {
    Dialogue d({}, bounds);
    std::string output = d.Say(request.substr(0, cut));
    output += d.Say(request.substr(cut));
    EXPECT_THAT(output, StartsWith("HTTP/1.1 200 OK\r\n")) << "cut at " << cut;
    EXPECT_THAT(d.handler.asked, ElementsAre("POST / abcde")) << "cut at " << cut;
    EXPECT_TRUE(d.rest.empty());
  }
}

TEST(HttpSession, ConfiguredHostsAreServed) {
  Dialogue d({.hosts = KnownHosts({"limits.example.com"})});
  EXPECT_THAT(d.Say(LocalGet("Host: limits.example.com\r\n")), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST(HttpSession, TakesWhatIsJustInItsBounds) {
  const std::string line = "GET /" + std::string(100, 'a') + " HTTP/1.1\r\n";
  const std::string head = line + "Host: localhost\r\nA: " + std::string(100, 'a') + "\r\n\r\n";
  const Bounds bounds = {.line_bytes_max = line.size() - 1,
                         .head_bytes_max = head.size(),
                         .fields_max = 2,
                         .body_bytes_max = 5};
  Dialogue d({}, bounds);
  EXPECT_THAT(d.Say(head), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(d.Say(kLocalPost), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST(HttpSession, SaysNothingOnAnIdleConnectionThatIsClosed) {
  Dialogue d;
  std::string output;
  d.session.OnGivenUp(net::Session::GivenUp::kIdle, output, kNow);
  EXPECT_THAT(output, IsEmpty());
}

TEST(HttpSession, SaysThatARequestTookTooLong) {
  Dialogue d;
  EXPECT_EQ(d.Say("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhe"), "");
  std::string output;
  d.session.OnGivenUp(net::Session::GivenUp::kTooSlow, output, kNow);
  EXPECT_THAT(output, StartsWith("HTTP/1.1 408 Request Timeout\r\n"));
  EXPECT_THAT(output, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_THAT(d.handler.asked, IsEmpty());
}

TEST(HttpSession, SaysThatTheServerHasNoBuffersLeftForARequest) {
  Dialogue d;
  EXPECT_EQ(d.Say("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50000\r\n\r\n" +
                  std::string(40'000, 'x')),
            "");
  EXPECT_GE(d.session.BufferedBytes(), 40'000u);
  std::string output;
  d.session.OnGivenUp(net::Session::GivenUp::kNoBuffers, output, kNow);
  EXPECT_THAT(output, StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(output, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_THAT(output, HasSubstr("\"hint\":"));
  EXPECT_LT(d.session.BufferedBytes(), 16'000u);
  EXPECT_THAT(d.handler.asked, IsEmpty());
}

// However the request arrived, the handler is called again with the complete request, and later
// input waits.
TEST(HttpSession, AHandlerThatAnswersLaterIsAskedAgainWithTheSameRequest) {
  const std::string post =
      "POST /p HTTP/1.1\r\nHost: localhost\r\nX-Custom: c\r\nContent-Length: 5\r\n\r\nhello";
  const std::string chunked =
      "POST /p HTTP/1.1\r\nHost: localhost\r\nX-Custom: c\r\nTransfer-Encoding: "
      "chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
  for (const std::string& request : {post, chunked}) {
    for (const size_t split : {size_t{0}, request.size() - 3}) {
      SCOPED_TRACE(request.substr(0, split));
      Dialogue d;
      d.handler.waits = 2;
      std::string output = d.Say(request.substr(0, split));
      output += d.Say(request.substr(split) + std::string(kLocalGet));
      EXPECT_EQ(output, "");
      EXPECT_TRUE(d.progress.waiting());
      EXPECT_EQ(d.Say(""), "");
      EXPECT_TRUE(d.progress.waiting());
      output = d.Say("");
      EXPECT_FALSE(d.progress.waiting());
      EXPECT_THAT(d.handler.asked,
                  ElementsAre("POST /p hello", "POST /p hello", "POST /p hello", "GET /x?y=1 "));
      EXPECT_THAT(d.handler.custom, ElementsAre("c", ""));
      EXPECT_THAT(output, HasSubstr("\r\n\r\nhelloHTTP/1.1 200 OK"));
      EXPECT_THAT(output, Not(HasSubstr("dropped")));
    }
  }
}

TEST(HttpSession, AnAnswerThatComesLaterStillClosesWhereItShall) {
  Dialogue d;
  d.handler.waits = 1;
  EXPECT_EQ(d.Say("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"), "");
  EXPECT_FALSE(d.progress.close);
  EXPECT_THAT(d.Say(""), HasSubstr("Connection: close"));
  EXPECT_TRUE(d.progress.close);
}

}  // namespace handled_requests_test
}  // namespace headgate::http::http1
