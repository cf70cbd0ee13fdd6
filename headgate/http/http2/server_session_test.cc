// The frames of a server, one by one: heads, bodies, ends, tunnels, shutdown.
#include "headgate/http/http2/server_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "headgate/http/http2/test_raw_server.h"

namespace headgate::http::http2 {
namespace server_session_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr BodyLength kUnsized{.kind = BodyLength::Kind::kUnsized};
constexpr BodyLength kTunnel{.kind = BodyLength::Kind::kTunnel};
constexpr BodyLength Sized(uint64_t bytes) {
  return {.kind = BodyLength::Kind::kSized, .bytes = bytes};
}

const Pairs kWebSocket = {{":method", "CONNECT"},
                          {":protocol", "websocket"},
                          {":scheme", "https"},
                          {":path", "/chat"},
                          {":authority", "a.example"}};

TEST(ServerSession, BeginsWithItsSettings) {
  RawServer server(RawServer::Start::kNothing);
  EXPECT_THAT(
      server.Say(std::string(kPreface) + Settings()),
      ElementsAre("SETTINGS 4=65536 6=65536 9=1 3=100 8=1", "SETTINGS ack", "WINDOW 0 +983041"));
  EXPECT_FALSE(server.progress.streaming);
  EXPECT_FALSE(server.progress.mid_request);
}

// ---- Requests

TEST(ServerSession, TheHeadSaysWhatTheRequestMeans) {
  RawServer server;
  (void)server.Say(Headers(1,
                           {{":method", "POST"},
                            {":scheme", "HTTPS"},
                            {":authority", "a.example:8443"},
                            {":path", "/x?y"},
                            {"cookie", "a=1"},
                            {"x", "1"},
                            {"te", "Trailers"},
                            {"cookie", "b=2"},
                            {"expect", "100-continue"},
                            {"host", "A.example:8443"},
                            {"content-length", "12"},
                            {"x", "2"}},
                           0));
  ASSERT_EQ(server.application.requests.size(), 1u);
  const RequestHead& head = server.application.last().head;
  EXPECT_EQ(head.version, Version::kHttp2);
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.scheme, "https");
  EXPECT_EQ(head.authority, "a.example:8443");
  EXPECT_EQ(head.target, "/x?y");
  EXPECT_EQ(head.protocol, "");
  EXPECT_EQ(head.body, Sized(12));
  EXPECT_TRUE(head.expects_continue);
  EXPECT_TRUE(head.accepts_trailers);
  std::vector<std::string> fields;
  for (const auto [name, value] : head.fields)
    fields.push_back(std::string(name) + ": " + std::string(value));
  EXPECT_THAT(fields, ElementsAre("x: 1", "x: 2", "cookie: a=1; b=2")) << "RFC 9113, 8.2.3";
}

TEST(ServerSession, SettingsOfHttp2AreNotPassedOn) {
  RawServer server;
  (void)server.Say(Headers(1, With(Get(), {{"http2-settings", "AAMAAABk"}, {"x", "1"}})));
  ASSERT_EQ(server.application.requests.size(), 1u);
  const Fields& fields = server.application.last().head.fields;
  EXPECT_EQ(fields.size(), 1u);
  EXPECT_EQ(fields.Find("x"), "1");
}

TEST(ServerSession, TheLengthOfABodyFollowsFromTheFrames) {
  struct LengthCase {
    Pairs fields;
    int flags;
    BodyLength expected;
  };
  for (const LengthCase& test :
       {LengthCase{Get(), kEndStream, {}}, LengthCase{Post(), kEndStream, {}},
        LengthCase{Post({{"content-length", "0"}}), kEndStream, Sized(0)},
        LengthCase{Post({{"content-length", "0"}}), 0, Sized(0)},
        LengthCase{Post({{"content-length", "9"}}), 0, Sized(9)}, LengthCase{Post(), 0, kUnsized},
        LengthCase{Get(), 0, kUnsized}}) {
    RawServer server;
    (void)server.Say(Headers(1, test.fields, test.flags));
    ASSERT_EQ(server.application.requests.size(), 1u);
    EXPECT_EQ(server.application.last().head.body, test.expected);
    EXPECT_EQ(server.application.last().ended, test.flags == kEndStream);
  }
}

TEST(ServerSession, AnIncompleteHeadIsInTheMiddleOfARequest) {
  RawServer server;
  const std::string head = Headers(1, Get());
  for (size_t size = 1; size < head.size(); ++size) {
    RawServer partial;
    (void)partial.Say(std::string_view(head).substr(0, size));
    EXPECT_TRUE(partial.progress.mid_request) << size;
    EXPECT_FALSE(partial.progress.streaming && partial.application.requests.size() > 0) << size;
  }
  (void)server.Say(head);
  EXPECT_FALSE(server.progress.mid_request);
  EXPECT_TRUE(server.progress.streaming);
  (void)server.Say(Headers(3, Post(), 0) + Data(3, "abc").substr(0, 10));
  EXPECT_FALSE(server.progress.mid_request) << "a slow body is the application's affair";
}

TEST(ServerSession, DataIsPassedOnAsItArrives) {
  RawServer server;
  (void)server.Say(Headers(1, Post(), 0));
  const std::string data = Data(1, "abcdef", kEndStream);
  (void)server.Say(std::string_view(data).substr(0, 11));
  EXPECT_EQ(server.application.last().body, "ab");
  EXPECT_FALSE(server.application.last().ended);
  (void)server.Say(std::string_view(data).substr(11));
  EXPECT_EQ(server.application.last().body, "abcdef");
  EXPECT_TRUE(server.application.last().ended);
}

TEST(ServerSession, ABodyOfAnotherLengthIsAborted) {
  for (const bool shorter : {false, true}) {
    RawServer server;
    (void)server.Say(Headers(1, Post({{"content-length", "3"}}), 0));
    EXPECT_THAT(server.Say(shorter ? Data(1, "ab", kEndStream) : Data(1, "abcd", kEndStream)),
                ::testing::Contains("RST 1 PROTOCOL_ERROR"));
    EXPECT_FALSE(server.application.last().ended);
    EXPECT_TRUE(server.application.last().aborted);
    EXPECT_TRUE(server.application.last().malformed);
    EXPECT_EQ(server.application.last().exchange, nullptr);
  }
}

// Whatever reason it states.
TEST(ServerSession, AResetIsNoMalformedRequest) {
  RawServer server;
  (void)server.Say(Headers(1, Post(), 0));
  (void)server.Say(Reset(1, static_cast<uint32_t>(ErrorCode::kProtocolError)));
  EXPECT_TRUE(server.application.last().aborted);
  EXPECT_FALSE(server.application.last().malformed);
}

TEST(ServerSession, AResetAbortsTheRequestAtOnce) {
  RawServer server;
  (void)server.Say(Headers(1, Post(), 0) + Headers(3, Get()));
  (void)server.Say(Reset(1, 8));
  EXPECT_TRUE(server.application.requests[0]->aborted);
  EXPECT_EQ(server.application.requests[0]->exchange, nullptr);
  EXPECT_FALSE(server.application.requests[1]->aborted);
  EXPECT_TRUE(server.progress.streaming);
}

TEST(ServerSession, WindowsAreRefilledOnlyForConsumedData) {
  RawServer server;
  server.application.consumes = false;
  (void)server.Say(Headers(1, Post(), 0));
  EXPECT_THAT(server.Say(Data(1, std::string(16384, 'a')) + Data(1, std::string(16384, 'a'))),
              IsEmpty());
  TestRequest& request = server.application.last();
  request.exchange->Consumed(16384);
  EXPECT_THAT(server.Say(""), IsEmpty()) << "in steps of half a window";
  request.exchange->Consumed(16384);
  EXPECT_TRUE(server.woken);
  EXPECT_THAT(server.Say(""), ElementsAre("WINDOW 1 +32768"));
}

TEST(ServerSession, DataNobodyWantsRefillsTheConnection) {
  RawServer server;
  server.application.consumes = false;
  // Each stream leaves data unconsumed when it ends: 32 MiB in all.
  uint32_t stream = 1;
  std::vector<std::string> lines;
  for (int i = 0; i < 1000; ++i, stream += 2) {
    std::string bytes = Headers(stream, Post(), 0) + Data(stream, std::string(16384, 'a')) +
                        Data(stream, std::string(16384, 'a'), kEndStream);
    for (std::string& line : server.Say(bytes)) lines.push_back(std::move(line));
    server.application.requests[static_cast<size_t>(i)]->exchange->Abort();
    (void)server.Say("");
  }
  EXPECT_FALSE(server.closed);
  EXPECT_EQ(server.application.open(), 0u);
  EXPECT_EQ(server.session.BufferedBytes(), 0u);
}

// ---- Responses

TEST(ServerSession, EachKindOfBodyHasItsFrames) {
  RawServer server;
  (void)server.Say(Headers(1, Get()) + Headers(3, Get()) + Headers(5, Get()) + Headers(7, Get()));
  const auto exchange = [&](size_t i) { return server.application.requests[i]->exchange; };
  exchange(0)->SendHead({.status = 204});
  exchange(0)->SendEnd({});
  exchange(1)->SendHead({.status = 200, .body = Sized(2)});
  exchange(1)->SendData("ab");
  exchange(1)->SendEnd({});
  exchange(2)->SendHead({.status = 200, .body = kUnsized});
  exchange(2)->SendData("abc");
  Fields trailers;
  trailers.Add("X-Sum", "1");
  trailers.Add("Transfer-Encoding", "chunked");
  exchange(2)->SendEnd(trailers);
  exchange(3)->SendHead({.status = 200, .body = kUnsized});
  exchange(3)->SendEnd(trailers);
  EXPECT_THAT(server.Say(""),
              ::testing::UnorderedElementsAre(
                  "HEADERS 1 end :status=204", "HEADERS 3 :status=200 content-length=2",
                  "DATA 3 2 end", "HEADERS 5 :status=200", "DATA 5 3", "HEADERS 5 end x-sum=1",
                  "HEADERS 7 :status=200", "HEADERS 7 end x-sum=1"));
  EXPECT_EQ(server.progress.answered, 4u);
  EXPECT_EQ(server.application.open(), 0u);
}

TEST(ServerSession, TrailersThatMeanSomethingInHeadsAreLeftOut) {
  RawServer server;
  (void)server.Say(Headers(1, Get()) + Headers(3, Get()));
  Fields trailers;
  for (const auto* name : {"Content-Length", "Content-Type", "Host", "Authorization", "Connection"})
    trailers.Add(name, "x");
  for (const bool another : {false, true}) {
    ServerExchange& exchange = *server.application.requests[another ? 1 : 0]->exchange;
    if (another) trailers.Add("Sum", "1");
    exchange.SendHead({.status = 200, .body = kUnsized});
    exchange.SendData("a");
    exchange.SendEnd(trailers);
  }
  EXPECT_THAT(server.Say(""), ::testing::UnorderedElementsAre(
                                  "HEADERS 1 :status=200", "DATA 1 1 end", "HEADERS 3 :status=200",
                                  "DATA 3 1", "HEADERS 3 end sum=1"));
}

TEST(ServerSession, FieldsOfTheConnectionAreLeftOut) {
  RawServer server;
  (void)server.Say(Headers(1, Get()));
  ResponseHead head{.status = 200};
  for (const auto* name : {"Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding",
                           "Upgrade", "Content-Length", "TE"})
    head.fields.Add(name, "x");
  head.fields.Add("Set-Cookie", "a=b");
  head.fields.Add("Set-Cookie", "c=d");
  server.application.last().exchange->SendHead(head);
  server.application.last().exchange->SendEnd({});
  EXPECT_THAT(server.Say(""),
              ElementsAre("HEADERS 1 end :status=200 set-cookie=a=b set-cookie=c=d"));
}

TEST(ServerSession, AnEarlyAnswerEndsTheRequest) {
  RawServer server;
  (void)server.Say(Headers(1, Post(), 0) + Data(1, "some"));
  TestRequest& request = server.application.last();
  request.exchange->SendHead({.status = 401});
  request.exchange->SendEnd({});
  EXPECT_THAT(server.Say(""), ElementsAre("HEADERS 1 end :status=401"));
  EXPECT_TRUE(request.aborted);
  EXPECT_EQ(request.exchange, nullptr);
  EXPECT_THAT(server.Say(Data(1, "more") + Data(1, "", kEndStream) + Ping()),
              ElementsAre("PING ack"));
  EXPECT_EQ(request.body, "some");
  EXPECT_FALSE(server.progress.streaming);
}

TEST(ServerSession, StreamsShareTheConnection) {
  RawServer server;
  (void)server.Say(Headers(1, Get()) + Headers(3, With(Get(), {{"priority", "u=0"}})) +
                   WindowUpdate(0, 1'000'000));
  for (const auto& request : server.application.requests) {
    request->exchange->SendHead({.status = 200, .body = kUnsized});
    request->exchange->SendData(std::string(40'000, 'a'));
  }
  std::vector<std::string> order;
  for (const std::string& line : server.Say("")) {
    if (line.starts_with("DATA")) order.push_back(line.substr(0, 6));
  }
  EXPECT_THAT(order, ElementsAre("DATA 1", "DATA 3", "DATA 1", "DATA 3", "DATA 1", "DATA 3"));
}

// ---- Memory

TEST(ServerSession, CountsTheDataThatIsNotConsumedAndThatReceiversHold) {
  RawServer server;
  server.application.consumes = false;
  (void)server.Say(Headers(1, Post(), 0) + Headers(3, Post(), 0));
  EXPECT_EQ(server.session.BufferedBytes(), 0u);
  (void)server.Say(Data(1, std::string(10'000, 'a')) + Data(3, std::string(500, 'b')));
  EXPECT_EQ(server.session.BufferedBytes(), 10'500u);
  TestRequest& first = *server.application.requests[0];
  first.exchange->Consumed(std::exchange(first.unconsumed, 0));
  first.held = 9'000;
  EXPECT_EQ(server.session.BufferedBytes(), 9'500u);
  (void)server.Say(Reset(1, 8));
  EXPECT_EQ(server.session.BufferedBytes(), 500u) << "the request is gone";
}

TEST(ServerSession, CountsAnswersThatWaitForAWindow) {
  RawServer server;
  (void)server.Say(Settings(Setting(4, 0)));
  for (const uint32_t stream : {1u, 3u}) {
    (void)server.Say(Headers(stream, Get()));
    TestRequest& request = server.application.last();
    request.exchange->SendHead({.status = 200, .body = kUnsized});
    request.exchange->SendData(std::string(60'000, 'a'));
    request.exchange->SendEnd({});
  }
  EXPECT_GE(server.session.BufferedBytes(), 120'000u);
  for (const std::string& line : server.Say("")) EXPECT_FALSE(line.starts_with("DATA")) << line;
  EXPECT_GE(server.session.BufferedBytes(), 120'000u);
  EXPECT_LE(server.session.BufferedBytes(), 240'000u) << "a buffer at most doubles";
  (void)server.Say(Reset(1, 8));
  EXPECT_GE(server.session.BufferedBytes(), 60'000u);
  EXPECT_LE(server.session.BufferedBytes(), 120'000u);
  (void)server.Say(Reset(3, 8));
  EXPECT_EQ(server.session.BufferedBytes(), 0u);
}

TEST(ServerSession, WithoutContentNobodyWaitsForContinue) {
  for (const Pairs& fields : {Get(), Post({{"content-length", "0"}})}) {
    RawServer server;
    (void)server.Say(Headers(1, With(fields, {{"expect", "100-continue"}})));
    ASSERT_EQ(server.application.requests.size(), 1u);
    EXPECT_FALSE(server.application.last().head.expects_continue) << "RFC 9110, 10.1.1";
    EXPECT_EQ(server.application.last().head.fields.CountOf("expect"), 0u);
  }
}

// ---- Tunnels

TEST(ServerSession, DataOfATunnelWaitsForTheAnswer) {
  RawServer server;
  (void)server.Say(Headers(1, kWebSocket, 0) + Data(1, "early") + Data(1, "", kEndStream));
  TestRequest& request = server.application.last();
  EXPECT_EQ(request.head.protocol, "websocket");
  EXPECT_EQ(request.body, "");
  EXPECT_FALSE(request.ended);
  request.exchange->SendHead({.status = 101, .body = kTunnel});
  EXPECT_THAT(server.Say(""), ElementsAre("HEADERS 1 :status=200"));
  EXPECT_EQ(request.body, "early");
  EXPECT_TRUE(request.ended);
  EXPECT_FALSE(request.aborted);
  request.exchange->SendData("late");
  request.exchange->SendEnd({});
  EXPECT_THAT(server.Say(""), ElementsAre("DATA 1 4 end"));
  EXPECT_EQ(request.exchange, nullptr);
}

TEST(ServerSession, DataOfARefusedTunnelIsDropped) {
  RawServer server;
  (void)server.Say(Headers(1, kWebSocket, 0) + Data(1, "early"));
  EXPECT_EQ(server.session.BufferedBytes(), 5u);
  TestRequest& request = server.application.last();
  request.exchange->SendHead({.status = 403});
  request.exchange->SendEnd({});
  EXPECT_THAT(server.Say(""), ElementsAre("HEADERS 1 end :status=403"));
  EXPECT_THAT(server.Say(Data(1, "late", kEndStream)), IsEmpty());
  EXPECT_EQ(request.body, "");
  EXPECT_TRUE(request.ended);
  EXPECT_FALSE(server.progress.streaming);
  EXPECT_EQ(server.session.BufferedBytes(), 0u);
}

TEST(ServerSession, FieldsOfTheApplicationAreNotInTrailers) {
  for (const std::string name : {"x-client-id", "x_client_id", "x-client"}) {
    RawServer server(RawServer::Start::kReady, {.never_in_trailers = {"X-Client-Id"}});
    const auto lines =
        server.Say(Headers(1, Post({{"x-client-id", "me"}}), 0) + Headers(1, {{name, "you"}}));
    const bool allowed = name == "x-client";
    EXPECT_EQ(lines.empty(), allowed) << name;
    EXPECT_EQ(server.application.last().ended, allowed) << name;
    EXPECT_EQ(server.application.last().aborted, !allowed) << name;
    EXPECT_EQ(lines == std::vector<std::string>{"RST 1 PROTOCOL_ERROR"}, !allowed) << name;
  }
}

TEST(ServerSession, ATunnelHasNoTrailers) {
  RawServer server;
  (void)server.Say(Headers(1, kWebSocket, 0));
  server.application.last().exchange->SendHead({.status = 101, .body = kTunnel});
  (void)server.Say("");
  EXPECT_THAT(server.Say(Headers(1, {{"x", "y"}})), ElementsAre("RST 1 PROTOCOL_ERROR"));
  EXPECT_TRUE(server.application.last().aborted);
}

// ---- Shutdown

TEST(ServerSession, ADrainAnnouncesItselfThenNamesTheLastStream) {
  RawServer server;
  (void)server.Say(Headers(1, Get()));
  server.session.OnDrain();
  EXPECT_TRUE(server.woken);
  EXPECT_THAT(server.Say(""), ElementsAre("GOAWAY 2147483647 NO_ERROR", "PING"));
  EXPECT_TRUE(server.progress.streaming) << "the connection stays until the client knows";
  // It was on its way when the notice arrived.
  (void)server.Say(Headers(3, Get()));
  EXPECT_EQ(server.application.requests.size(), 2u);
  EXPECT_THAT(server.Say(Frame(kTPing, kAck, 0, Number(0, 8))), ElementsAre("GOAWAY 3 NO_ERROR"));
  EXPECT_THAT(server.Say(Headers(5, Post(), 0) + Data(5, "a", kEndStream)), IsEmpty())
      << "the client sends it elsewhere";
  EXPECT_EQ(server.application.requests.size(), 2u);
  for (const auto& request : server.application.requests) {
    EXPECT_FALSE(server.closed);
    request->exchange->SendHead({.status = 200});
    request->exchange->SendEnd({});
    (void)server.Say("");
  }
  EXPECT_TRUE(server.closed);
  EXPECT_FALSE(server.progress.protocol_error);
}

TEST(ServerSession, ASecondPingAnswerChangesNothing) {
  RawServer server;
  (void)server.Say(Headers(1, Get()) + Ping(kAck));
  server.session.OnDrain();
  (void)server.Say("");
  EXPECT_THAT(server.Say(Ping(kAck)), ElementsAre("GOAWAY 1 NO_ERROR"));
  EXPECT_THAT(server.Say(Ping(kAck)), IsEmpty());
}

TEST(ServerSession, AClientThatGoesAwayMayWaitForItsAnswers) {
  RawServer server;
  (void)server.Say(Headers(1, Get()) + Frame(kTGoaway, 0, 0, Number(0, 8)));
  EXPECT_FALSE(server.closed);
  server.application.last().exchange->SendHead({.status = 200});
  EXPECT_THAT(server.Say(""), ElementsAre("HEADERS 1 end :status=200"));
  EXPECT_TRUE(server.closed);
  EXPECT_FALSE(server.progress.protocol_error);
}

TEST(ServerSession, AConnectionThatIsGivenUpSaysSo) {
  RawServer server;
  (void)server.Say(Headers(1, Get()));
  std::string output;
  server.session.OnGivenUp(net::Session::GivenUp::kNoBuffers, output, kNow);
  EXPECT_THAT(server.log.Read(output), ElementsAre("GOAWAY 1 ENHANCE_YOUR_CALM"));
  EXPECT_TRUE(server.application.last().aborted);
}

TEST(ServerSession, AnIdleConnectionThatIsClosedSaysWhichRequestsItTook) {
  RawServer server;
  (void)server.Say(Headers(3, Get()));
  server.application.last().exchange->SendHead({.status = 200});
  (void)server.Say("");
  std::string output;
  server.session.OnGivenUp(net::Session::GivenUp::kIdle, output, kNow);
  EXPECT_THAT(server.log.Read(output), ElementsAre("GOAWAY 3 NO_ERROR"));
}

TEST(ServerSession, ItsEndAbortsEveryRequest) {
  TestApplication application;
  {
    Counters counters;
    const ServerOptions options;
    ServerSession session(application, options, net::Peer{}, counters);
    std::string output;
    const std::string bytes = std::string(kPreface) + Settings() + Headers(1, Get());
    (void)session.OnBytes(bytes, output, kNow);
    ASSERT_EQ(application.open(), 1u);
  }
  EXPECT_TRUE(application.last().aborted);
  EXPECT_EQ(application.open(), 0u);
}

}  // namespace server_session_test
}  // namespace headgate::http::http2
