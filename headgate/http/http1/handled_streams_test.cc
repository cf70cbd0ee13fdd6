// Bodies in parts without sockets: the calls of sources, and the resulting bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "headgate/http/http1/handler_dialogue.h"
#include "headgate/http/http1/test_bodies.h"

namespace headgate::http::http1 {
namespace handled_streams_test {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kGetRoot = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
constexpr std::string_view kGetSmall = "GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n";

struct Talk {
  Talk() {
    session->SetWaker([this] { ++woken; });
  }
  // Makes one call, like the event loop.
  std::string Say(std::string_view bytes) {
    rest.append(bytes);
    std::string output;
    progress = session->OnBytes(rest, output, now);
    rest.erase(0, progress.consumed);
    return output;
  }
  // Also makes the further calls while the session has more.
  std::string SayAll(std::string_view bytes) {
    std::string output = Say(bytes);
    while (progress.more) output += Say("");
    return output;
  }

  StreamingHandler handler;
  HandlerSession parts{handler, {}, {}};
  std::unique_ptr<ServerSession> session =
      std::make_unique<ServerSession>(parts.application, parts.server_options, net::Peer{});
  net::Session::Progress progress;
  std::string rest;
  int woken = 0;
  base::Instant now = base::Instant::FromNanos(1'000'000'000);
};

// Decodes a chunked body; fails if it is incomplete.
std::string Dechunked(std::string_view bytes) {
  Bounds bounds{.body_bytes_max = size_t{1} << 30};
  Chunks chunks(bounds);
  chunks.Begin();
  std::string body;
  EXPECT_TRUE(chunks.Take(bytes, body).done);
  return body;
}

std::string_view BodyOf(std::string_view answer) {
  return answer.substr(answer.find("\r\n\r\n") + 4);
}

TEST(BodySource, OfAKnownSizeIsSentUnderItsLength) {
  Talk talk;
  talk.handler.source.size = 100'000;
  const std::string answer = talk.SayAll(std::string(kGetRoot) + std::string(kGetSmall));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 100000\r\n"));
  EXPECT_THAT(std::string(BodyOf(answer)),
              StartsWith(SourceControl::Content(0, 100'000) + "HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, EndsWith("small"));
  EXPECT_FALSE(talk.handler.source.alive);
}

TEST(BodySource, OfAnUnknownSizeIsSentInChunks) {
  Talk talk;
  talk.handler.source = {.size = 200'000, .states_size = false};
  const std::string answer = talk.SayAll(kGetRoot);
  EXPECT_THAT(answer, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(answer, Not(HasSubstr("Content-Length")));
  EXPECT_EQ(Dechunked(BodyOf(answer)), SourceControl::Content(0, 200'000));
  EXPECT_FALSE(talk.progress.close);
}

TEST(BodySource, OfAnUnknownSizeEndsWithTheConnectionForHttp10) {
  Talk talk;
  talk.handler.source = {.size = 1000, .states_size = false};
  const std::string answer = talk.SayAll("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  EXPECT_EQ(BodyOf(answer), SourceControl::Content(0, 1000));
  EXPECT_TRUE(talk.progress.close);
}

TEST(BodySource, IsAskedForNoMoreThanTheClientTakes) {
  Talk talk;
  talk.handler.source.size = 10'000'000;
  size_t total = 0;
  std::string output = talk.Say(kGetRoot);
  while (talk.progress.more) {
    EXPECT_LE(output.size(), kWindowBytes + HandlerApplication::kPartBytesMax + 1000);
    EXPECT_LE(talk.handler.source.given, total + output.size());
    total += output.size();
    output = talk.Say("");
  }
  EXPECT_GT(total + output.size(), 10'000'000u);
  EXPECT_EQ(talk.handler.source.given, 10'000'000u);
}

TEST(BodySource, ThatHasNothingYetIsAskedAgainWhenItHas) {
  Talk talk;
  talk.handler.source = {.size = 10, .ready = 4};
  EXPECT_THAT(talk.Say(kGetRoot), EndsWith("\r\n\r\nabcd"));
  EXPECT_EQ(talk.progress.waiting_since, talk.now);
  EXPECT_FALSE(talk.progress.streaming);
  talk.now += 3s;
  talk.handler.source.ready = 7;
  talk.handler.source.wake();
  EXPECT_EQ(talk.woken, 1);
  EXPECT_EQ(talk.Say(""), "efg");
  EXPECT_EQ(talk.progress.waiting_since, talk.now) << "it has gone on meanwhile";
  talk.handler.source.ready = 10;
  talk.handler.source.wake();
  EXPECT_EQ(talk.Say(""), "hij");
  EXPECT_FALSE(talk.progress.waiting());
  EXPECT_EQ(talk.progress.answered, 1u);
}

TEST(BodySource, WithoutAnEndRestsWithoutADeadlineAndEndsWhenTheServerGoesDown) {
  Talk talk;
  talk.handler.source = {.size = UINT64_MAX, .ready = 3, .states_size = false, .endless = true};
  EXPECT_THAT(talk.Say(kGetRoot), EndsWith("\r\n\r\n3\r\nabc\r\n"));
  EXPECT_TRUE(talk.progress.streaming);
  EXPECT_FALSE(talk.progress.waiting());
  EXPECT_FALSE(talk.progress.stop_reading) << "so that the client's end is seen";
  EXPECT_FALSE(talk.progress.mid_request);
  EXPECT_EQ(talk.Say(kGetSmall), "") << "in order";
  EXPECT_EQ(talk.rest, kGetSmall);
  talk.session->OnDrain();
  EXPECT_EQ(talk.woken, 1);
  EXPECT_THAT(talk.Say(""), StartsWith("0\r\n\r\n"));
  EXPECT_FALSE(talk.handler.source.alive);
}

TEST(FixedBody, GivesItsTextInPartsAndStatesItsSize) {
  const std::string text = SourceControl::Content(0, 1000);
  FixedBody body(text);
  EXPECT_EQ(body.size_bytes(), 1000u);
  std::string out;
  EXPECT_EQ(body.Read(400, out, base::Instant()), BodySource::Next::kMore);
  EXPECT_EQ(out.size(), 400u);
  EXPECT_EQ(body.Read(400, out, base::Instant()), BodySource::Next::kMore);
  EXPECT_EQ(body.Read(400, out, base::Instant()), BodySource::Next::kEnd);
  EXPECT_EQ(out, text);
  EXPECT_EQ(FixedBody("").Read(1, out, base::Instant()), BodySource::Next::kEnd);
}

TEST(BodySource, ThatBreaksClosesInTheMiddle) {
  Talk talk;
  talk.handler.source = {.size = 10, .ready = 4, .states_size = false, .breaks = true};
  EXPECT_THAT(talk.SayAll(kGetRoot), EndsWith("abcd\r\n"));
  EXPECT_TRUE(talk.progress.close);
}

TEST(BodySource, ThatGivesLessOrMoreThanItStatedIsBroken) {
  for (const uint64_t stated : {5u, 20u}) {
    struct Liar final : BodySource {
      explicit Liar(uint64_t size) : stated_size(size) {}
      Next Read(size_t, std::string& out, base::Instant) override {
        out += "0123456789";
        return Next::kEnd;
      }
      std::optional<uint64_t> size_bytes() const override { return stated_size; }
      uint64_t stated_size;
    };
    struct LyingHandler final : Handler {
      void Handle(const Request&, Response& response, base::Instant) override {
        response.stream = std::make_unique<Liar>(size);
      }
      uint64_t size = 0;
    } handler;
    handler.size = stated;
    HandlerSession parts(handler, {}, {});
    std::string output;
    const auto progress = parts.session.OnBytes(kGetRoot, output, base::Instant::FromNanos(1));
    EXPECT_TRUE(progress.close);
    EXPECT_EQ(BodyOf(output), std::string_view("0123456789").substr(0, stated));
  }
}

TEST(BodySource, IsNotAskedForTheAnswerToHead) {
  Talk talk;
  talk.handler.source.size = 10;
  const std::string answer = talk.SayAll("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 10\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
  EXPECT_EQ(talk.handler.source.given, 0u);
  EXPECT_FALSE(talk.handler.source.alive);
}

TEST(BodySource, GoesWithItsClient) {
  Talk talk;
  talk.handler.source = {.size = 10, .ready = 4};
  talk.Say(kGetRoot);
  EXPECT_TRUE(talk.handler.source.alive);
  std::string output;
  talk.session->OnGivenUp(net::Session::GivenUp::kNoBuffers, output, talk.now);
  EXPECT_EQ(output, "") << "in the middle of an answer nothing can be said";
  talk.session.reset();
  EXPECT_FALSE(talk.handler.source.alive);
}

}  // namespace handled_streams_test
}  // namespace headgate::http::http1
