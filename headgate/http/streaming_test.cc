// Bodies in parts without sockets: the calls of sources and sinks, and the resulting bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "headgate/http/session.h"
#include "headgate/http/test_bodies.h"

namespace headgate::http {
namespace streaming_test {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
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

  Options options;
  StreamingHandler handler;
  std::unique_ptr<Session> session = std::make_unique<Session>(handler, options, net::Peer{});
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
  const std::string answer = talk.SayAll(std::string(kGet) + std::string(kGetSmall));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 100000\r\n"));
  EXPECT_THAT(std::string(BodyOf(answer)),
              StartsWith(SourceControl::Content(0, 100'000) + "HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, EndsWith("small"));
  EXPECT_FALSE(talk.handler.source.alive);
}

TEST(BodySource, OfAnUnknownSizeIsSentInChunks) {
  Talk talk;
  talk.handler.source = {.size = 200'000, .states_size = false};
  const std::string answer = talk.SayAll(kGet);
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
  std::string output = talk.Say(kGet);
  while (talk.progress.more) {
    EXPECT_LE(output.size(), Session::kOutputPauseBytes + Session::kPartBytesMax + 1000);
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
  EXPECT_THAT(talk.Say(kGet), EndsWith("\r\n\r\nabcd"));
  EXPECT_EQ(talk.progress.waiting_since, talk.now);
  EXPECT_TRUE(talk.progress.stop_reading);
  EXPECT_FALSE(talk.progress.streaming);
  talk.now += 3s;
  talk.handler.source.ready = 7;
  talk.handler.source.wake();
  EXPECT_EQ(talk.woken, 1);
  EXPECT_EQ(talk.Say(""), "efg");
  EXPECT_EQ(talk.progress.waiting_since, talk.now) << "it has gone on meanwhile";
  talk.handler.source.ready = 10;
  EXPECT_EQ(talk.Say(""), "hij");
  EXPECT_FALSE(talk.progress.waiting());
  EXPECT_EQ(talk.progress.answered, 1u);
}

TEST(BodySource, WithoutAnEndRestsWithoutADeadlineAndEndsWhenTheServerGoesDown) {
  Talk talk;
  talk.handler.source = {.size = UINT64_MAX, .ready = 3, .states_size = false, .endless = true};
  EXPECT_THAT(talk.Say(kGet), EndsWith("\r\n\r\n00000003\r\nabc\r\n"));
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
  EXPECT_THAT(talk.SayAll(kGet), EndsWith("abcd\r\n"));
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
    const Options options;
    Session session(handler, options, net::Peer{});
    std::string output;
    const auto progress = session.OnBytes(kGet, output, base::Instant::FromNanos(1));
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
  talk.Say(kGet);
  EXPECT_TRUE(talk.handler.source.alive);
  std::string output;
  talk.session->OnGivenUp(net::Session::GivenUp::kNoBuffers, output, talk.now);
  EXPECT_EQ(output, "") << "in the middle of an answer nothing can be said";
  talk.session.reset();
  EXPECT_FALSE(talk.handler.source.alive);
}

TEST(BodySink, GetsTheBodyAsItArrivesHoweverItIsFramed) {
  const std::string body = SourceControl::Content(0, 3000);
  const std::string head = "POST / HTTP/1.1\r\nHost: localhost\r\n";
  const std::string sized = head + "Content-Length: 3000\r\n\r\n" + body;
  const std::string chunked = head + "Transfer-Encoding: chunked\r\n\r\n3e8\r\n" +
                              body.substr(0, 1000) + "\r\n7d0\r\n" + body.substr(1000) +
                              "\r\n0\r\n\r\n";
  for (const std::string& request : {sized, chunked}) {
    for (const size_t piece : {size_t{1}, size_t{17}, size_t{4000}}) {
      Talk talk;
      std::string answer;
      for (size_t at = 0; at < request.size(); at += piece)
        answer += talk.Say(request.substr(at, piece));
      answer += talk.SayAll(kGetSmall);
      EXPECT_EQ(talk.handler.sink.received, body);
      EXPECT_LE(talk.handler.sink.part_bytes_max, piece);
      EXPECT_THAT(answer, HasSubstr("\r\n\r\nreceived 3000HTTP/1.1 200 OK"));
      EXPECT_THAT(answer, EndsWith("small"));
      EXPECT_FALSE(talk.handler.sink.alive);
    }
  }
}

TEST(BodySink, ThatIsBusyHoldsTheClientBack) {
  Talk talk;
  talk.handler.sink.busy = true;
  const std::string head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\n\r\n";
  EXPECT_EQ(talk.Say(head + "abc"), "");
  EXPECT_TRUE(talk.progress.stop_reading);
  EXPECT_EQ(talk.progress.waiting_since, talk.now);
  EXPECT_EQ(talk.Say("def"), "");
  EXPECT_EQ(talk.handler.sink.received, "abc") << "it is not offered before it asks";
  EXPECT_EQ(talk.rest, "def");
  talk.handler.sink.wake();
  EXPECT_EQ(talk.Say(""), "");
  EXPECT_EQ(talk.handler.sink.received, "abcdef");
  EXPECT_TRUE(talk.progress.waiting()) << "for the last part to be done with";
  talk.handler.sink.wake();
  EXPECT_THAT(talk.Say(""), EndsWith("received 6"));
  EXPECT_FALSE(talk.progress.waiting());
}

TEST(BodySink, IsNotMadeForABodyThatIsRefusedAndTheConnectionCloses) {
  Talk talk;
  const std::string answer = talk.Say(
      "POST /refused HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: "
      "6\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(talk.progress.close);
  EXPECT_FALSE(talk.progress.protocol_error);
}

TEST(BodySink, GoesWithItsClient) {
  Talk talk;
  talk.Say("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\n\r\nabc");
  EXPECT_TRUE(talk.handler.sink.alive);
  EXPECT_TRUE(talk.progress.mid_request);
  talk.session.reset();
  EXPECT_FALSE(talk.handler.sink.alive);
}

TEST(BodySink, TakesNoMoreThanTheBodyMayBe) {
  Talk talk;
  talk.options.bounds.body_bytes_max = 10;
  talk.session = std::make_unique<Session>(talk.handler, talk.options, net::Peer{});
  std::string answer = talk.Say(
      "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n12345678\r\n");
  answer += talk.Say("8\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 413 "));
  EXPECT_FALSE(talk.handler.sink.alive);
}

}  // namespace streaming_test
}  // namespace headgate::http
