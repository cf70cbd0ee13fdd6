// The frames of a client, one by one, and what it makes of a server's: valid responses, and a table
// of invalid ones.
#include "headgate/http/http2/client_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "headgate/http/http2/test_raw_client.h"
#include "headgate/http/http2/test_split_cases.h"

namespace headgate::http::http2 {
namespace client_session_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr BodyLength kUnsized{.kind = BodyLength::Kind::kUnsized};
constexpr BodyLength Sized(uint64_t bytes) {
  return {.kind = BodyLength::Kind::kSized, .bytes = bytes};
}

RequestHead Tunnel() {
  RequestHead head{.version = Version::kHttp2};
  head.method = "GET";
  head.scheme = "https";
  head.authority = "a.example";
  head.target = "/chat";
  head.protocol = "websocket";
  return head;
}

// ---- Requests

TEST(ClientSession, BeginsWithPrefaceAndSettings) {
  Counters counters;
  const ClientOptions options;
  ClientSession session(options, counters);
  const std::string output = session.output();
  ASSERT_TRUE(output.starts_with(kPreface));
  EXPECT_THAT(FrameLog().Read(output.substr(kPreface.size())),
              ElementsAre("SETTINGS 4=65536 6=65536 9=1 3=0 2=0", "WINDOW 0 +983041"));
  EXPECT_EQ(session.free_places(), 100u);
}

TEST(ClientSession, WritesHeads) {
  RawClient client;
  RequestHead head{.version = Version::kHttp11};
  head.method = "PUT";
  head.scheme = "https";
  head.authority = "a.example:1";
  head.target = "/x?y";
  head.body = Sized(2);
  head.expects_continue = true;
  head.accepts_trailers = true;
  head.fields.Add("X-Custom", "A");
  head.fields.Add("Connection", "close");
  client.Begin(head).exchange->SendData("ab");
  EXPECT_TRUE(client.woken);
  EXPECT_THAT(client.Say(""),
              ElementsAre("HEADERS 1 :method=PUT :scheme=https :authority=a.example:1 :path=/x?y "
                          "x-custom=A content-length=2 te=trailers expect=100-continue",
                          "DATA 1 2"));
  client.responses[0]->exchange->SendEnd({});
  EXPECT_THAT(client.Say(""), ElementsAre("DATA 1 0 end"));
}

TEST(ClientSession, HeadsWithoutABodyEndTheRequest) {
  RawClient client;
  client.Begin();
  client.Begin("POST", Sized(0)).exchange->SendEnd({});
  client.Begin("POST", kUnsized).exchange->SendEnd({});
  const std::string rest = " :scheme=http :authority=a.example :path=/";
  EXPECT_THAT(client.Say(""), ElementsAre("HEADERS 1 end :method=GET" + rest,
                                          "HEADERS 3 end :method=POST" + rest + " content-length=0",
                                          "HEADERS 5 :method=POST" + rest, "DATA 5 0 end"));
}

TEST(ClientSession, PlacesFollowTheServersSettings) {
  RawClient client(Settings(Setting(3, 2)));
  EXPECT_EQ(client.session.free_places(), 2u);
  client.Begin();
  EXPECT_EQ(client.session.free_places(), 1u);
  client.Begin();
  EXPECT_EQ(client.session.free_places(), 0u);
  EXPECT_FALSE(client.session.finished());
  EXPECT_EQ(client.Say("").size(), 2u) << "nothing waits inside";
  (void)client.Say(Headers(1, {{":status", "200"}}));
  EXPECT_TRUE(client.responses[0]->ended);
  EXPECT_EQ(client.session.free_places(), 1u);
  (void)client.Say(Settings(Setting(3, 0)));
  EXPECT_EQ(client.session.free_places(), 0u);
  (void)client.Say(Settings(Setting(3, 1'000'000)));
  EXPECT_EQ(client.session.free_places(), 99u) << "the options bound it too";
}

TEST(ClientSession, ATunnelWaitsForTheServersSettings) {
  RawClient client("");
  client.Begin(Tunnel());
  (void)client.Begin();
  EXPECT_THAT(client.Say(""),
              ElementsAre(::testing::StartsWith("SETTINGS"), ::testing::StartsWith("WINDOW"),
                          ::testing::StartsWith("HEADERS 1 end :method=GET")));
  EXPECT_THAT(client.Say(Settings(Setting(8, 1))),
              ElementsAre("SETTINGS ack",
                          "HEADERS 3 :method=CONNECT :scheme=https :authority=a.example "
                          ":path=/chat :protocol=websocket"));
}

TEST(ClientSession, ATunnelNeedsTheServersConsent) {
  RawClient client(Settings());
  client.Begin(Tunnel());
  EXPECT_THAT(client.Say(""), IsEmpty());
  EXPECT_EQ(client.responses[0]->failure, Failure::kNoTunnels);
  EXPECT_EQ(client.session.open_exchanges(), 0u);
  EXPECT_FALSE(client.session.finished());

  RawClient unsure("");
  unsure.Begin(Tunnel());
  (void)unsure.Say(Settings());
  EXPECT_EQ(unsure.responses[0]->failure, Failure::kNoTunnels);
}

// ---- Responses

TEST(ClientSession, ReadsHeads) {
  RawClient client;
  TestResponse& response = client.Begin();
  (void)client.Say("");
  (void)client.Say(Headers(1, {{":status", "103"}, {"link", "a"}}, 0) +
                   Headers(1, {{":status", "200"}, {"content-length", "3"}, {"x", "y"}}, 0) +
                   Data(1, "abc") + Headers(1, {{"sum", "1"}}));
  ASSERT_EQ(response.informationals.size(), 1u);
  EXPECT_EQ(Summary(response.informationals[0]), "103 link=a");
  EXPECT_EQ(Summary(*response.head), "200 sized 3 x=y");
  EXPECT_EQ(response.body, "abc");
  EXPECT_TRUE(response.ended);
  EXPECT_EQ(response.trailers.Find("sum"), "1");
}

struct ResponseCase {
  std::string name;
  std::string method;
  std::string bytes;
  std::string expected;
};

std::string Result(const TestResponse& response) {
  std::string text;
  if (response.head) text += Summary(*response.head) + " ";
  // The part of a body that arrived in front of a violation may be passed on.
  const bool invalid = response.failure == Failure::kInvalid;
  if (!response.body.empty() && !invalid) text += "\"" + response.body + "\" ";
  if (response.ended) return text + "end";
  if (!response.failure) return text + "open";
  switch (*response.failure) {
    case Failure::kNotSent:
      return text + "not sent";
    case Failure::kNoTunnels:
      return text + "no tunnels";
    case Failure::kNoAnswer:
      return text + "no answer";
    case Failure::kInvalid:
      return text + "invalid";
    case Failure::kTruncated:
      return text + "truncated";
  }
  return text;
}

std::string Replay(const ResponseCase& test, size_t split) {
  RawClient client;
  const TestResponse& response = client.Begin(test.method);
  (void)client.Say("");
  const std::string_view bytes = test.bytes;
  (void)client.Say(bytes.substr(0, split));
  (void)client.Say(bytes.substr(split));
  return Result(response);
}

TEST(ClientSession, Responses) {
  const auto head = [](const Pairs& more, int flags = kEndStream) {
    Pairs fields = {{":status", "200"}};
    fields.insert(fields.end(), more.begin(), more.end());
    return Headers(1, fields, flags);
  };
  const auto status = [](const std::string& text, int flags = kEndStream) {
    return Headers(1, {{":status", text}}, flags);
  };
  const auto length = [](const std::string& text) {
    return Headers(1, {{":status", "200"}, {"content-length", text}}, 0) +
           Data(1, "abc", kEndStream);
  };
  const auto trailer = [](const Pairs& trailers) {
    return Headers(1, {{":status", "200"}}, 0) + Headers(1, trailers);
  };
  std::string hints;
  for (int i = 0; i < 33; ++i) hints += Headers(1, {{":status", "103"}}, 0);
  Pairs many;
  for (int i = 0; i < 100; ++i) many.emplace_back("x", "y");
  const std::vector<ResponseCase> cases = {
      {"no body", "GET", head({}), "200 end"},
      {"a body", "GET", head({}, 0) + Data(1, "ab", kEndStream), "200 unsized \"ab\" end"},
      {"a sized body", "GET", length("3"), "200 sized 3 \"abc\" end"},
      {"a length of 0", "GET", head({{"content-length", "0"}}), "200 sized 0 end"},
      {"HEAD", "HEAD", head({{"content-length", "3"}}), "200 sized 3 end"},
      {"HEAD with an empty DATA", "HEAD",
       head({{"content-length", "3"}}, 0) + Data(1, "", kEndStream), "200 sized 3 end"},
      {"HEAD with data", "HEAD", head({}, 0) + Data(1, "a", kEndStream), "200 invalid"},
      {"204", "GET", status("204"), "204 end"},
      {"204 with data", "GET", status("204", 0) + Data(1, "a", kEndStream), "204 invalid"},
      {"204 with a length of 0", "GET", Headers(1, {{":status", "204"}, {"content-length", "0"}}),
       "204 end"},
      {"204 with a length of 5", "GET", Headers(1, {{":status", "204"}, {"content-length", "5"}}),
       "invalid"},
      {"304 with a length", "GET", Headers(1, {{":status", "304"}, {"content-length", "5"}}),
       "304 sized 5 end"},
      {"304 with data", "GET", status("304", 0) + Data(1, "a", kEndStream), "304 invalid"},
      {"status 599", "GET", status("599"), "599 end"},
      {"status 600", "GET", status("600"), "invalid"},
      {"status 999", "GET", status("999"), "invalid"},
      {"status 099", "GET", status("099"), "invalid"},
      {"status 20", "GET", status("20"), "invalid"},
      {"status 2000", "GET", status("2000"), "invalid"},
      {"status 2a0", "GET", status("2a0"), "invalid"},
      {"status 101", "GET", status("101", 0), "invalid"},
      {"status 100 that ends", "GET", status("100"), "invalid"},
      {"status 103 with a length", "GET",
       Headers(1, {{":status", "103"}, {"content-length", "0"}}, 0), "invalid"},
      {"33 informational heads", "GET", hints, "invalid"},
      {"data before the final head", "GET", status("100", 0) + Data(1, "a"), "invalid"},
      {"no status", "GET", Headers(1, {{"x", "y"}}), "invalid"},
      {"two statuses", "GET", head({{":status", "200"}}), "invalid"},
      {"a pseudo field of requests", "GET", head({{":path", "/"}}), "invalid"},
      {"a status behind a field", "GET", Headers(1, {{"x", "y"}, {":status", "200"}}), "invalid"},
      {"a name in upper case", "GET", head({{"X-Test", "y"}}), "invalid"},
      {"an empty name", "GET", head({{"", "y"}}), "invalid"},
      {"a name with a space", "GET", head({{"a b", "y"}}), "invalid"},
      {"a value with LF", "GET", head({{"x", "a\nset-cookie: b"}}), "invalid"},
      {"a value with NUL", "GET", head({{"x", std::string("a\0b", 3)}}), "invalid"},
      {"a value in Latin-1", "GET", head({{"x", "caf\xe9"}}), "200 x=caf\xe9 end"},
      {"a value with 0xff", "GET", head({{"x", "\xff"}}), "200 x=\xff end"},
      {"a value with a space at its end", "GET", head({{"x", "a "}}), "invalid"},
      {"connection", "GET", head({{"connection", "close"}}), "invalid"},
      {"transfer-encoding", "GET", head({{"transfer-encoding", "chunked"}}), "invalid"},
      {"content_length", "GET", head({{"content_length", "3"}}), "invalid"},
      {"transfer_encoding", "GET", head({{"transfer_encoding", "chunked"}}), "invalid"},
      {"keep-alive", "GET", head({{"keep-alive", "timeout=1"}}), "invalid"},
      {"upgrade", "GET", head({{"upgrade", "h2c"}}), "invalid"},
      {"content-length: 03", "GET", length("03"), "invalid"},
      {"content-length: +3", "GET", length("+3"), "invalid"},
      {"content-length: 3, 3", "GET", length("3, 3"), "invalid"},
      {"two content-lengths", "GET", head({{"content-length", "0"}, {"content-length", "0"}}),
       "invalid"},
      {"less than content-length", "GET", length("4"), "200 sized 4 invalid"},
      {"more than content-length", "GET", length("2"), "200 sized 2 invalid"},
      {"a length without a body", "GET", head({{"content-length", "2"}}), "invalid"},
      {"100 fields and a status", "GET", head(many), "invalid"},
      {"trailers", "GET", trailer({{"x", "y"}}), "200 unsized end"},
      {"trailers that do not end", "GET", head({}, 0) + Headers(1, {{"x", "y"}}, 0),
       "200 unsized invalid"},
      {"trailers with a pseudo field", "GET", trailer({{":status", "200"}}), "200 unsized invalid"},
      {"trailers with content-length", "GET", trailer({{"content-length", "0"}}),
       "200 unsized invalid"},
      {"trailers with transfer-encoding", "GET", trailer({{"transfer-encoding", "chunked"}}),
       "200 unsized invalid"},
      {"trailers with set-cookie", "GET", trailer({{"set-cookie", "a=b"}}), "200 unsized invalid"},
      {"trailers with cache_control", "GET", trailer({{"cache_control", "no-store"}}),
       "200 unsized invalid"},
      {"trailers with via", "GET", trailer({{"via", "2 a"}}), "200 unsized invalid"},
      {"trailers with LF", "GET", trailer({{"x", "a\nb"}}), "200 unsized invalid"},
      {"a reset before the head", "GET", Reset(1, 2), "no answer"},
      {"a reset after an informational head", "GET", status("100", 0) + Reset(1, 2), "no answer"},
      {"a reset after the head", "GET", head({}, 0) + Reset(1, 2), "200 unsized truncated"},
      {"a refused stream", "GET", Reset(1, 7), "not sent"},
      {"a reset with NO_ERROR", "GET", Reset(1, 0), "no answer"},
      {"GOAWAY before the stream", "GET", Frame(kTGoaway, 0, 0, Number(0, 8)), "not sent"},
      {"GOAWAY behind the stream", "GET", Frame(kTGoaway, 0, 0, Number(1, 4) + Number(0, 4)),
       "open"},
      {"GOAWAY with an error", "GET", Frame(kTGoaway, 0, 0, Number(1, 4) + Number(2, 4)), "open"},
      {"a push", "GET", Frame(kTPush, kEndHeaders, 1, Number(2, 4) + Block({{":method", "GET"}})),
       "invalid"},
      {"HEADERS of an idle stream", "GET", Headers(3, {{":status", "200"}}), "invalid"},
      {"DATA of an idle stream", "GET", Data(3, "a"), "invalid"},
      {"DATA before the head", "GET", Data(1, "a"), "invalid"},
      {"a frame that is too large", "GET", Data(1, std::string(16385, 'a')), "invalid"},
      {"a block that is no HPACK", "GET",
       Frame(kTHeaders, kEndHeaders, 1, "\xff\xff\xff\xff\xff\xff\xff\xff"), "invalid"},
      {"HTTP/1", "GET", "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", "invalid"},
  };
  CheckSplitCases(cases, Replay);
}

TEST(ClientSession, AfterAViolationOfOneStreamOnlyTheOthersEnd) {
  RawClient client;
  client.Begin();
  client.Begin();
  (void)client.Say("");
  EXPECT_THAT(client.Say(Headers(1, {{":status", "999"}})), ElementsAre("RST 1 PROTOCOL_ERROR"));
  EXPECT_EQ(client.responses[0]->failure, Failure::kInvalid);
  EXPECT_TRUE(client.session.finished());
  EXPECT_EQ(client.session.free_places(), 0u);
  EXPECT_EQ(client.session.open_exchanges(), 1u);
  (void)client.Say(Data(1, "late") + Headers(3, {{":status", "200"}}));
  EXPECT_TRUE(client.responses[1]->ended);
}

TEST(ClientSession, AViolationOfTheConnectionEndsIt) {
  RawClient client;
  client.Begin();
  client.Begin();
  (void)client.Say("");
  (void)client.Say(Headers(1, {{":status", "200"}}, 0));
  EXPECT_THAT(client.Say(Frame(kTPing, 0, 0, "1")), ElementsAre("GOAWAY 0 FRAME_SIZE_ERROR"));
  EXPECT_EQ(client.responses[0]->failure, Failure::kInvalid);
  EXPECT_EQ(client.responses[1]->failure, Failure::kInvalid);
  EXPECT_TRUE(client.session.finished());
  EXPECT_EQ(client.session.open_exchanges(), 0u);
  EXPECT_EQ(client.session.free_places(), 0u);
}

TEST(ClientSession, GoawaySeparatesWhatWasProcessed) {
  RawClient client;
  client.Begin();
  client.Begin();
  client.Begin();
  (void)client.Say("");
  (void)client.Say(Frame(kTGoaway, 0, 0, Number(3, 4) + Number(0, 4)));
  EXPECT_TRUE(client.session.finished());
  EXPECT_EQ(client.session.free_places(), 0u);
  EXPECT_EQ(client.responses[2]->failure, Failure::kNotSent);
  EXPECT_EQ(client.session.open_exchanges(), 2u);
  (void)client.Say(Headers(1, {{":status", "200"}}) + Headers(3, {{":status", "200"}}));
  EXPECT_TRUE(client.responses[0]->ended);
  EXPECT_TRUE(client.responses[1]->ended);
  EXPECT_EQ(client.session.open_exchanges(), 0u);
}

TEST(ClientSession, TheEndOfTheConnectionEndsEveryExchange) {
  RawClient client;
  client.Begin();
  client.Begin();
  (void)client.Say("");
  (void)client.Say(Headers(1, {{":status", "200"}}, 0));
  client.session.OnInputEnd(kNow);
  EXPECT_EQ(client.responses[0]->failure, Failure::kTruncated);
  EXPECT_EQ(client.responses[1]->failure, Failure::kNoAnswer);
  EXPECT_TRUE(client.session.finished());
}

TEST(ClientSession, CancelResetsTheStream) {
  RawClient client;
  TestResponse& response = client.Begin("POST", kUnsized);
  response.exchange->SendData("ab");
  (void)client.Say("");
  response.exchange->SendData("cd");
  response.exchange->Cancel();
  EXPECT_TRUE(client.woken);
  EXPECT_EQ(client.session.open_exchanges(), 0u);
  EXPECT_THAT(client.Say(""), ElementsAre("RST 1 CANCEL"));
  (void)client.Say(Headers(1, {{":status", "200"}}));
  EXPECT_EQ(Result(response), "open") << "it is not called again";
}

// A server may take them for a flood, and end the exchanges of others too.
TEST(ClientSession, ManyCancelledExchangesWearIt) {
  RawClient client;
  TestResponse& kept = client.Begin();
  const auto cancel_one = [&] {
    TestResponse& response = client.Begin();
    (void)client.Say("");
    response.exchange->Cancel();
    EXPECT_THAT(client.Say(""), ElementsAre(::testing::EndsWith("CANCEL")));
  };
  for (int i = 0; i < 100; ++i) cancel_one();
  EXPECT_FALSE(client.session.worn());
  cancel_one();
  EXPECT_TRUE(client.session.worn());
  EXPECT_FALSE(client.session.finished()) << "its owner decides";
  EXPECT_EQ(client.session.free_places(), 99u);
  client.session.Retire();
  EXPECT_TRUE(client.session.finished());
  EXPECT_EQ(client.session.free_places(), 0u);
  EXPECT_EQ(client.session.open_exchanges(), 1u);
  (void)client.Say(Headers(1, {{":status", "200"}}));
  EXPECT_TRUE(kept.ended);
}

TEST(ClientSession, CancelledExchangesThatTheServerDoesNotSeeDoNotCount) {
  RawClient client;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 90; ++i) client.Begin().exchange->Cancel();
    EXPECT_THAT(client.Say(""), IsEmpty());
  }
  EXPECT_EQ(client.session.free_places(), 100u);
}

// A session whose exchanges are cancelled, one after the other.
struct Canceller {
  void BeginAndCancel(base::Instant now) {
    ClientExchange& exchange = session.Begin(head, response, now);
    session.output().clear();
    exchange.Cancel();
    session.output().clear();
  }

  Counters counters;
  const ClientOptions options;
  ClientSession session{options, counters};
  RequestHead head{
      .version = Version::kHttp2, .method = "GET", .target = "/", .authority = "a.example"};
  TestResponse response;
};

// Netty ends a connection after 200 resets in 30 s. Exchanges are cancelled ten times a second.
TEST(ClientSession, IsWornBeforeTheStrictestServersEndTheConnection) {
  Canceller client;
  int cancelled = 0;
  for (base::Instant now = kNow; !client.session.worn(); now += std::chrono::milliseconds(100)) {
    client.BeginAndCancel(now);
    ++cancelled;
  }
  // 100, and three more in each of the 14 seconds.
  EXPECT_GT(cancelled, 100 + 3 * 14 - 2);
  EXPECT_LT(cancelled, 100 + 3 * 15 + 2);
}

TEST(ClientSession, ThreeCancelledExchangesInEachSecondDoNotWearIt) {
  Canceller client;
  base::Instant now = kNow;
  for (int i = 0; i < 600; ++i) {
    now += std::chrono::milliseconds(334);
    client.BeginAndCancel(now);
  }
  EXPECT_FALSE(client.session.worn());
  EXPECT_EQ(client.session.free_places(), 100u);
}

TEST(ClientSession, AResponseThatEndsFirstEndsTheRequest) {
  RawClient client;
  TestResponse& response = client.Begin("POST", kUnsized);
  (void)client.Say("");
  EXPECT_THAT(client.Say(Headers(1, {{":status", "413"}})), ElementsAre("RST 1 NO_ERROR"));
  EXPECT_EQ(Result(response), "413 end");
}

TEST(ClientSession, MoreThanTheWindowIsInvalid) {
  RawClient client;
  TestResponse& response = client.Begin();
  response.consumes = false;
  (void)client.Say("");
  std::string bytes = Headers(1, {{":status", "200"}}, 0);
  for (int i = 0; i < 4; ++i) bytes += Data(1, std::string(16384, 'a'));
  (void)client.Say(bytes);
  EXPECT_EQ(response.unconsumed, kWindowBytes);
  EXPECT_THAT(client.Say(Data(1, "a")), ElementsAre("RST 1 FLOW_CONTROL_ERROR"));
  EXPECT_EQ(response.failure, Failure::kInvalid);
}

TEST(ClientSession, FloodsOfAServerAreBounded) {
  RawClient client;
  client.Begin();
  std::string bytes;
  for (int i = 0; i < 201; ++i) bytes += Ping();
  const std::vector<std::string> lines = client.Say(bytes);
  EXPECT_EQ(lines.back(), "GOAWAY 0 ENHANCE_YOUR_CALM");
  EXPECT_TRUE(client.session.finished());
  EXPECT_EQ(client.counters.floods[static_cast<size_t>(Flood::kPings)].value(), 1u);
}

TEST(ClientSession, AServerThatTakesNoOutputIsNotRead) {
  RawClient client(Settings(Setting(4, 0x7fffffff)) + WindowUpdate(0, 0x7fff0000 - 65535),
                   {.unsent_bytes_max = 100'000});
  size_t unsent = 0;
  for (int i = 0; i < 10; ++i) {
    client.Begin("POST", kUnsized).exchange->SendData(std::string(60'000, 'a'));
    unsent += std::exchange(client.session.output(), {}).size();
    client.session.OnUnsent(unsent, kNow);
  }
  EXPECT_FALSE(client.session.wants_input());
  EXPECT_LT(unsent, 200'000u) << "data waits in the streams";
  client.woken = false;
  client.session.OnUnsent(0, kNow);
  EXPECT_TRUE(client.woken);
  EXPECT_FALSE(client.session.output().empty());
}

}  // namespace client_session_test
}  // namespace headgate::http::http2
