// Every kind of frame that RFC 9113 and RFC 7541 forbid, and some that they allow but few clients
// send, against a server. The names begin with the section. Each case is replayed in
// two parts, split at every byte. One file because the cases are one table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "headgate/http/http2/test_raw_server.h"
#include "headgate/http/http2/test_split_cases.h"

namespace headgate::http::http2 {
namespace conformance_test {

struct Case {
  std::string name;
  std::string bytes;     // after the preface and SETTINGS
  std::string expected;  // see Outcome
  enum Application { kAnswers, kSilent, kAnswersEarly } application = kAnswers;
};

std::string Replay(const Case& test, size_t split) {
  RawServer server;
  if (test.application == Case::kAnswers) server.AnswerAll();
  if (test.application == Case::kAnswersEarly) {
    server.application.on_request = [](TestRequest& request) {
      request.exchange->SendHead({.status = 413});
      request.exchange->SendEnd({});
    };
  }
  const std::string_view bytes = test.bytes;
  std::vector<std::string> lines = server.Say(bytes.substr(0, split));
  for (std::string& line : server.Say(bytes.substr(split))) lines.push_back(std::move(line));
  const std::string outcome = Outcome(lines);
  EXPECT_EQ(server.closed, outcome.starts_with("GOAWAY"));
  EXPECT_EQ(server.progress.protocol_error, server.closed);
  return outcome;
}

void Check(const std::vector<Case>& cases) { CheckSplitCases(cases, Replay); }

std::string HeadersWith(uint32_t stream, std::string_view block, int flags = kEndStream) {
  return Frame(kTHeaders, flags | kEndHeaders, stream, block);
}
std::string GetBlock() { return Block(Get()); }
const std::string kProtocol = "GOAWAY PROTOCOL_ERROR";
const std::string kFrameSize = "GOAWAY FRAME_SIZE_ERROR";
const std::string kClosed = "GOAWAY STREAM_CLOSED";
const std::string kCompression = "GOAWAY COMPRESSION_ERROR";
const std::string kFlow = "GOAWAY FLOW_CONTROL_ERROR";
const std::string kReset1 = "RST 1 PROTOCOL_ERROR";

// ---- 3 and 4

TEST(Conformance, Preface) {
  struct PrefaceCase {
    std::string name;
    std::string bytes;
    std::string expected;
  };
  const std::string preface(kPreface);
  const std::vector<PrefaceCase> cases = {
      {"3.4 valid", preface + Settings(), "SETTINGS ack"},
      {"3.4 valid, with a request at once", preface + Settings() + Headers(1, Get()),
       "SETTINGS ack, 1:200"},
      {"3.4 another preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\r" + Settings(), kProtocol},
      {"3.4 HTTP/1", "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", kProtocol},
      {"3.4 no SETTINGS first", preface + Ping(), kProtocol},
      {"3.4 HEADERS first", preface + Headers(1, Get()), kProtocol},
      {"3.4 SETTINGS with ACK first", preface + Settings("", kAck), kProtocol},
  };
  for (const PrefaceCase& test : cases) {
    SCOPED_TRACE(test.name);
    for (size_t split = 0; split <= test.bytes.size(); ++split) {
      RawServer server(RawServer::Start::kNothing);
      server.AnswerAll();
      const std::string_view bytes = test.bytes;
      std::vector<std::string> lines = server.Say(bytes.substr(0, split));
      for (std::string& line : server.Say(bytes.substr(split))) lines.push_back(std::move(line));
      ASSERT_EQ(Outcome(lines), test.expected) << "split at " << split;
    }
  }
}

TEST(Conformance, Frames) {
  Check({
      {"4.1 an unknown type is ignored", Frame(0xbe, 0, 0, "12345678") + Headers(1, Get()),
       "1:200"},
      {"4.1 unknown flags are ignored", Frame(kTPing, 0xfe, 0, "12345678"), "PING ack"},
      {"4.1 the reserved bit is ignored", Frame(kTPing, 0, 0x80000000, "12345678"), "PING ack"},
      {"4.2 DATA of 2^14 bytes",
       Headers(1, Post(), 0) + Data(1, std::string(16384, 'a'), kEndStream), "1:200"},
      {"4.2 DATA of 2^14 + 1 bytes",
       Headers(1, Post(), 0) + Data(1, std::string(16385, 'a'), kEndStream), kFrameSize},
      {"4.2 HEADERS of 2^14 + 1 bytes",
       HeadersWith(1, GetBlock() + Literal("x", std::string(16400, 'a'))), kFrameSize},
      {"4.3 a block that is no HPACK", HeadersWith(1, "\xff\xff\xff\xff\xff\xff\xff\xff"),
       kCompression},
      {"4.3 PRIORITY within a block",
       Frame(kTHeaders, kEndStream, 1, GetBlock()) + Frame(kTPriority, 0, 1, Number(0, 5)),
       kProtocol},
      {"4.3 HEADERS of another stream within a block",
       Frame(kTHeaders, kEndStream, 1, GetBlock()) + Headers(3, Get()), kProtocol},
      {"5.5 an unknown type within a block",
       Frame(kTHeaders, kEndStream, 1, GetBlock()) + Frame(0xbe, 0, 1, "1234"), kProtocol},
      {"5.5 an unknown type on a stream", Headers(1, Get()) + Frame(0xbe, 0, 1, "1234"), "1:200"},
      {"5.5 an unknown setting", Settings(Setting(0xff, 1)), "SETTINGS ack"},
  });
}

// ---- 5

TEST(Conformance, StreamStates) {
  const std::string open = Headers(1, Post(), 0);
  const std::string half_closed = Headers(1, Get());
  const std::string reset = open + Reset(1, 8);
  const std::string fragment = Frame(kTContinuation, kEndHeaders, 1, GetBlock());
  Check({
      {"5.1 idle: DATA", Data(1, "a", kEndStream), kProtocol},
      {"5.1 idle: RST_STREAM", Reset(1, 8), kProtocol},
      {"5.1 idle: WINDOW_UPDATE", WindowUpdate(1, 100), kProtocol},
      {"5.1 idle: CONTINUATION", fragment, kProtocol},
      {"5.1 idle: PRIORITY", Frame(kTPriority, 0, 1, Number(0, 5)) + Headers(1, Get()), "1:200"},
      {"5.1 half closed: DATA", half_closed + Data(1, "a", kEndStream), kClosed, Case::kSilent},
      {"5.1 half closed: HEADERS", half_closed + Headers(1, Get()), kClosed, Case::kSilent},
      {"5.1 half closed: CONTINUATION", half_closed + fragment, kProtocol, Case::kSilent},
      {"5.1 half closed: WINDOW_UPDATE", half_closed + WindowUpdate(1, 1) + Ping(), "PING ack",
       Case::kSilent},
      {"5.1 half closed: RST_STREAM", half_closed + Reset(1, 8) + Ping(), "PING ack",
       Case::kSilent},
      {"5.1 half closed: PRIORITY", half_closed + Frame(kTPriority, 0, 1, Number(0, 5)) + Ping(),
       "PING ack", Case::kSilent},
      {"5.1 reset: DATA", reset + Data(1, "a", kEndStream), kClosed},
      {"5.1 reset: HEADERS", reset + Headers(1, Get()), kClosed},
      {"5.1 reset: CONTINUATION", reset + fragment, kProtocol},
      {"5.1 reset: RST_STREAM", reset + Reset(1, 8) + Ping(), "PING ack"},
      {"5.1 reset: WINDOW_UPDATE", reset + WindowUpdate(1, 1) + Ping(), "PING ack"},
      {"5.1 reset: PRIORITY", reset + Frame(kTPriority, 0, 1, Number(0, 5)) + Ping(), "PING ack"},
      {"5.1 trailers without END_STREAM", open + Headers(1, {{"x", "y"}}, 0), kReset1},
      {"5.1.1 an even stream", Headers(2, Get()), kProtocol},
      {"5.1.1 a stream below the newest", Headers(5, Get()) + Headers(3, Get()), kProtocol,
       Case::kSilent},
      {"5.1.1 streams may be left out", Headers(5, Get()) + Headers(9, Get()), "5:200, 9:200"},
      {"5.4.1 the connection ends after an error", Frame(kTPing, 0, 0, "1") + Headers(1, Get()),
       kFrameSize},
  });
}

TEST(Conformance, RequestsThatEndAfterTheirAnswer) {
  const std::string open = Headers(1, Post(), 0);
  const std::string ended = open + Data(1, "a", kEndStream);
  const std::string padded = Frame(kTData, kPadded | kEndStream, 1, std::string("\3a\0\0\0", 5));
  const auto early = Case::kAnswersEarly;
  Check({
      {"8.1 DATA", ended, "1:413", early},
      {"8.1 several DATA", open + Data(1, "a") + Data(1, "b") + Data(1, "", kEndStream), "1:413",
       early},
      {"8.1 padded DATA", open + padded, "1:413", early},
      {"8.1 trailers", open + Data(1, "a") + Headers(1, {{"x", "y"}}), "1:413", early},
      {"8.1 no end", open + Data(1, "a"), "1:413", early},
      {"5.1 WINDOW_UPDATE", open + WindowUpdate(1, 1), "1:413", early},
      {"5.1 another stream", open + Headers(3, Get()) + Data(1, "a", kEndStream), "1:413, 3:413",
       early},
      {"5.1 closed: DATA", ended + Data(1, "b", kEndStream), kClosed, early},
      {"5.1 closed: HEADERS", ended + Headers(1, Get()), kClosed, early},
      {"6.9 a window of 0", open + WindowUpdate(0, 0), kProtocol, early},
  });
}

TEST(Conformance, StreamsThatHaveEnded) {
  for (const std::string& late : {Data(1, "a", kEndStream), Headers(1, Get())}) {
    RawServer server;
    server.AnswerAll();
    EXPECT_EQ(Outcome(server.Say(Headers(1, Get()))), "1:200");
    EXPECT_EQ(Outcome(server.Say(late)), kClosed) << "5.1";
  }
  RawServer server;
  server.AnswerAll();
  EXPECT_EQ(Outcome(server.Say(Headers(1, Get()))), "1:200");
  EXPECT_EQ(Outcome(server.Say(WindowUpdate(1, 1) + Reset(1, 8) + Ping())), "PING ack")
      << "these may cross the end";
}

// The client may not have seen our reset when it sent them.
TEST(Conformance, FramesOfAStreamThatWeResetAreIgnored) {
  RawServer server;
  server.AnswerAll();
  EXPECT_EQ(Outcome(server.Say(Headers(1, {{":method", "POST"}}, 0))), kReset1);
  EXPECT_EQ(Outcome(server.Say(Data(1, "a") + Data(1, "b") + Headers(1, {{"x", "y"}}) + Ping())),
            "PING ack");
  EXPECT_EQ(Outcome(server.Say(Headers(3, Get()))), "3:200") << "HPACK is still in step";
}

TEST(Conformance, MoreStreamsThanAllowed) {
  ServerOptions options;
  options.streams_max = 2;
  {
    // The client may not know the limit yet.
    RawServer server(RawServer::Start::kNothing, options);
    (void)server.Say(std::string(kPreface) + Settings());
    const std::string three = Headers(1, Post(), 0) + Headers(3, Get()) + Headers(5, Post(), 0);
    EXPECT_EQ(Outcome(server.Say(three)), "RST 5 REFUSED_STREAM") << "5.1.2";
    EXPECT_EQ(Outcome(server.Say(Data(5, "a", kEndStream) + Ping())), "PING ack");
    EXPECT_EQ(server.application.requests.size(), 2u);
  }
  RawServer server(RawServer::Start::kReady, options);
  EXPECT_EQ(Outcome(server.Say(Headers(1, Get()) + Headers(3, Get()))), "");
  EXPECT_EQ(Outcome(server.Say(Headers(5, Get()))), kProtocol) << "5.1.2";
}

// ---- 6

TEST(Conformance, DataHeadersPriorityReset) {
  const std::string open = Headers(1, Post(), 0);
  Check({
      {"6.1 DATA of stream 0", Data(0, "a"), kProtocol},
      {"6.1 padded DATA",
       open + Frame(kTData, kEndStream | kPadded, 1,
                    "\x03"
                    "abc123"),
       "1:200"},
      {"6.1 only padding",
       open + Frame(kTData, kEndStream | kPadded, 1,
                    "\x03"
                    "123"),
       "1:200"},
      {"6.1 more padding than payload",
       open + Frame(kTData, kEndStream | kPadded, 1,
                    "\x09"
                    "abc123"),
       kProtocol},
      {"6.1 as much padding as payload",
       open + Frame(kTData, kEndStream | kPadded, 1,
                    "\x06"
                    "abc12"),
       kProtocol},
      {"6.1 padded without a length", open + Frame(kTData, kEndStream | kPadded, 1, ""), kProtocol},
      {"6.2 HEADERS of stream 0", HeadersWith(0, GetBlock()), kProtocol},
      {"6.2 padded HEADERS", HeadersWith(1, "\x02" + GetBlock() + "12", kEndStream | kPadded),
       "1:200"},
      {"6.2 more padding than payload", HeadersWith(1, "\xff" + GetBlock(), kEndStream | kPadded),
       kProtocol},
      {"6.2 with a priority", HeadersWith(1, Number(0, 5) + GetBlock(), kEndStream | kWithPriority),
       "1:200"},
      {"6.2 too short for a priority", HeadersWith(1, "1234", kEndStream | kWithPriority),
       kFrameSize},
      // RFC 7540, 5.3.1 forbids both. RFC 9113, 5.3.2 deprecates priorities, and PRIORITY is
      // ignored.
      {"5.3 HEADERS that depend on their stream",
       HeadersWith(1, Number(1, 4) + "\x10" + GetBlock(), kEndStream | kWithPriority), kProtocol},
      {"5.3 PRIORITY that depends on its stream",
       Frame(kTPriority, 0, 1, Number(1, 4) + "\x10") + Headers(1, Get()), "1:200"},
      {"6.3 PRIORITY with the least and the largest weight",
       Frame(kTPriority, 0, 1, Number(0, 5)) + Frame(kTPriority, 0, 1, Number(0, 4) + "\xff") +
           Headers(1, Get()),
       "1:200"},
      {"6.3 PRIORITY that is exclusive",
       Headers(1, Get()) + Frame(kTPriority, 0, 3, Number(0x80000001, 4) + "\x01") +
           Headers(3, Get()),
       "1:200, 3:200"},
      {"6.3 PRIORITY of an idle stream opens no lower one",
       Frame(kTPriority, 0, 7, Number(0, 5)) + Headers(3, Get()), "3:200"},
      {"6.3 PRIORITY of stream 0", Frame(kTPriority, 0, 0, Number(3, 5)), kProtocol},
      {"6.3 PRIORITY of 4 bytes", Frame(kTPriority, 0, 1, Number(0, 4)), kFrameSize},
      {"6.3 PRIORITY of 6 bytes", Frame(kTPriority, 0, 1, Number(0, 6)), kFrameSize},
      {"6.4 RST_STREAM of stream 0", Reset(0, 8), kProtocol},
      {"6.4 RST_STREAM of 3 bytes", open + Frame(kTReset, 0, 1, "123"), kFrameSize},
      {"6.4 RST_STREAM of 5 bytes", open + Frame(kTReset, 0, 1, "12345"), kFrameSize},
      {"7 RST_STREAM with an unknown error", open + Reset(1, 0xff) + Ping(), "PING ack"},
  });
}

TEST(Conformance, SettingsPushPingGoaway) {
  const std::string open = Headers(1, Post(), 0);
  Check({
      {"6.5 an ACK with a payload", Settings(Setting(3, 1), kAck), kFrameSize},
      {"6.5 on a stream", Frame(kTSettings, 0, 1, Setting(3, 1)), kProtocol},
      {"6.5 of 5 bytes", Settings("12345"), kFrameSize},
      {"6.5.2 ENABLE_PUSH of 2", Settings(Setting(2, 2)), kProtocol},
      {"6.5.2 INITIAL_WINDOW_SIZE of 2^31", Settings(Setting(4, 0x80000000)), kFlow},
      {"6.5.2 INITIAL_WINDOW_SIZE of 2^31 - 1", Settings(Setting(4, 0x7fffffff)), "SETTINGS ack"},
      {"6.5.2 MAX_FRAME_SIZE of 2^14 - 1", Settings(Setting(5, 16383)), kProtocol},
      {"6.5.2 MAX_FRAME_SIZE of 2^24", Settings(Setting(5, 1 << 24)), kProtocol},
      {"6.5.2 MAX_FRAME_SIZE of 2^24 - 1", Settings(Setting(5, (1 << 24) - 1)), "SETTINGS ack"},
      {"6.5.2 HEADER_TABLE_SIZE of 0", Settings(Setting(1, 0)) + Headers(1, Get()),
       "SETTINGS ack, 1:200"},
      {"6.5.3 each is acknowledged", Settings() + Settings(), "SETTINGS ack, SETTINGS ack"},
      {"8441 3 ENABLE_CONNECT_PROTOCOL of 2", Settings(Setting(8, 2)), kProtocol},
      {"6.6 PUSH_PROMISE of a client",
       open + Frame(kTPush, kEndHeaders, 1, Number(2, 4) + GetBlock()), kProtocol},
      {"6.7 PING", Ping(), "PING ack"},
      {"6.7 a PING with ACK is not answered", Ping(kAck), ""},
      {"6.7 PING on a stream", Frame(kTPing, 0, 1, "12345678"), kProtocol},
      {"6.7 PING of 7 bytes", Frame(kTPing, 0, 0, "1234567"), kFrameSize},
      {"6.7 PING of 9 bytes", Frame(kTPing, 0, 0, "123456789"), kFrameSize},
      {"6.8 GOAWAY on a stream", Frame(kTGoaway, 0, 1, Number(0, 8)), kProtocol},
      {"6.8 GOAWAY of 7 bytes", Frame(kTGoaway, 0, 0, Number(0, 7)), kFrameSize},
      {"7 GOAWAY with an unknown error", open + Frame(kTGoaway, 0, 0, Number(0xff, 8)) + Ping(),
       "PING ack", Case::kSilent},
  });
}

TEST(Conformance, WindowUpdateContinuation) {
  const std::string open = Headers(1, Post(), 0);
  const std::string begun = Frame(kTHeaders, kEndStream, 1, GetBlock());
  const auto more = [](int flags, std::string_view block, uint32_t stream = 1) {
    return Frame(kTContinuation, flags, stream, block);
  };
  Check({
      {"6.9 an increment of 0", WindowUpdate(0, 0), kProtocol},
      {"6.9 an increment of 0 on a stream", open + WindowUpdate(1, 0), kProtocol},
      {"6.9 of 3 bytes", Frame(kTWindow, 0, 0, "123"), kFrameSize},
      {"6.9 of 5 bytes", Frame(kTWindow, 0, 0, "12345"), kFrameSize},
      {"6.9.1 a window of more than 2^31 - 1", WindowUpdate(0, 0x7fffffff), kFlow},
      {"6.9.1 a window of 2^31 - 1", WindowUpdate(0, 0x7fffffff - 65535) + Ping(), "PING ack"},
      {"6.9.1 a stream's window of more than 2^31 - 1", open + WindowUpdate(1, 0x7fffffff),
       "RST 1 FLOW_CONTROL_ERROR"},
      {"6.10 a block in three frames",
       begun + more(0, Literal("a", "b")) + more(kEndHeaders, Literal("c", "d")), "1:200"},
      {"6.10 an empty CONTINUATION", begun + more(kEndHeaders, ""), "1:200"},
      {"6.10 DATA within a block", begun + Data(1, "a"), kProtocol},
      {"6.10 CONTINUATION of stream 0", begun + more(kEndHeaders, "", 0), kProtocol},
      {"6.10 CONTINUATION of another stream", begun + more(kEndHeaders, "", 3), kProtocol},
      {"6.10 after END_HEADERS", Headers(1, Get()) + more(kEndHeaders, GetBlock()), kProtocol,
       Case::kSilent},
      {"6.10 after END_HEADERS of CONTINUATION",
       begun + more(kEndHeaders, "") + more(kEndHeaders, ""), kProtocol, Case::kSilent},
      {"6.10 after DATA", open + Data(1, "a") + more(kEndHeaders, ""), kProtocol},
  });
}

// ---- 6.9: what we send keeps to the client's windows

struct WindowServer : RawServer {
  // Answers with ten bytes.
  WindowServer() {
    application.on_end = [](TestRequest& request) {
      request.exchange->SendHead(
          {.status = 200, .body = {.kind = BodyLength::Kind::kSized, .bytes = 10}});
      request.exchange->SendData("0123456789");
      request.exchange->SendEnd({});
    };
  }
  using Lines = std::vector<std::string>;
};

TEST(Windows, NoMoreIsSentThanTheInitialWindow) {
  WindowServer server;
  EXPECT_EQ(
      server.Say(Settings(Setting(4, 1)) + Headers(1, Get())),
      WindowServer::Lines({"SETTINGS ack", "HEADERS 1 :status=200 content-length=10", "DATA 1 1"}));
  EXPECT_EQ(server.Say(WindowUpdate(1, 2)), WindowServer::Lines({"DATA 1 2"}));
  EXPECT_EQ(server.Say(Settings(Setting(4, 3))), WindowServer::Lines({"SETTINGS ack", "DATA 1 2"}))
      << "6.9.2: open streams change by the difference";
  EXPECT_EQ(server.Say(WindowUpdate(1, 100)), WindowServer::Lines({"DATA 1 5 end"}));
  EXPECT_EQ(server.log.data, "0123456789");
}

TEST(Windows, AWindowMayBecomeNegative) {
  WindowServer server;
  EXPECT_EQ(server.Say(Settings(Setting(4, 3)) + Headers(1, Get())).back(), "DATA 1 3");
  EXPECT_EQ(server.Say(Settings(Setting(4, 2))), WindowServer::Lines({"SETTINGS ack"}));
  EXPECT_EQ(server.Say(WindowUpdate(1, 1)), WindowServer::Lines());
  EXPECT_EQ(server.Say(WindowUpdate(1, 1)), WindowServer::Lines({"DATA 1 1"}));
}

TEST(Windows, TheLastValueOfASettingCounts) {
  WindowServer server;
  EXPECT_EQ(server.Say(Settings(Setting(4, 100) + Setting(4, 1)) + Headers(1, Get())).back(),
            "DATA 1 1");
}

// RFC 9113, 6.9.2 asks for an error of the connection. nghttp2 resets the streams.
TEST(Windows, AnOverflowByASettingIsAnError) {
  RawServer server;
  EXPECT_EQ(Outcome(server.Say(Settings(Setting(4, 0)) + Headers(1, Get()) +
                               WindowUpdate(1, 0x7fffffff))),
            "SETTINGS ack");
  EXPECT_EQ(Outcome(server.Say(Settings(Setting(4, 1)))), "SETTINGS ack, RST 1 FLOW_CONTROL_ERROR");
}

TEST(Windows, TheConnectionsWindowHoldsToo) {
  WindowServer server;
  server.application.on_end = [](TestRequest& request) {
    request.exchange->SendHead({.status = 200, .body = {.kind = BodyLength::Kind::kUnsized}});
    request.exchange->SendData(std::string(70'000, 'a'));
    request.exchange->SendEnd({});
  };
  (void)server.Say(Settings(Setting(4, 1'000'000)) + Headers(1, Get()));
  EXPECT_EQ(server.log.data.size(), 65'535u);
  (void)server.Say(WindowUpdate(0, 100'000));
  EXPECT_EQ(server.log.data.size(), 70'000u);
}

TEST(Windows, AClientThatSendsMoreThanItsWindowIsReset) {
  RawServer server;
  server.application.consumes = false;
  std::string bytes = Headers(1, Post(), 0);
  for (int i = 0; i < 4; ++i) bytes += Data(1, std::string(16384, 'a'));
  EXPECT_EQ(Outcome(server.Say(bytes)), "");
  EXPECT_EQ(server.application.last().unconsumed, kWindowBytes);
  EXPECT_EQ(Outcome(server.Say(Data(1, "b"))), "RST 1 FLOW_CONTROL_ERROR");
  EXPECT_TRUE(server.application.last().aborted);
}

// ---- 8

TEST(Conformance, Messages) {
  const auto request = [](const Pairs& fields) { return Headers(1, fields); };
  const auto with = [](const Pairs& more) { return Headers(1, With(Get(), more)); };
  const auto post = [](const Pairs& more, std::string_view data) {
    return Headers(1, Post(more), 0) + Data(1, data, kEndStream);
  };
  const auto trailer = [](const Pairs& trailers) {
    return Headers(1, Post(), 0) + Headers(1, trailers);
  };
  const auto pseudo = [](std::string_view method, std::string_view scheme, std::string_view path) {
    return Pairs{{":method", std::string(method)},
                 {":scheme", std::string(scheme)},
                 {":path", std::string(path)},
                 {":authority", "a.example"}};
  };
  Check({
      {"8.1 a body and trailers", Headers(1, Post(), 0) + Data(1, "a") + Headers(1, {{"x", "y"}}),
       "1:200"},
      {"8.1 a third HEADERS",
       Headers(1, Post(), 0) + Headers(1, {{"x", "y"}}, 0) + Headers(1, {{"x", "y"}}), kReset1},
      {"8.1.1 a content-length", post({{"content-length", "3"}}, "abc"), "1:200"},
      {"8.1.1 less than the content-length", post({{"content-length", "4"}}, "abc"), kReset1},
      {"8.1.1 more than the content-length", post({{"content-length", "2"}}, "abc"), kReset1},
      {"8.1.1 a content-length of several DATA",
       Headers(1, Post({{"content-length", "3"}}), 0) + Data(1, "a") + Data(1, "b") +
           Data(1, "c", kEndStream),
       "1:200"},
      {"8.1.1 less than the content-length in several DATA",
       Headers(1, Post({{"content-length", "4"}}), 0) + Data(1, "a") + Data(1, "b") +
           Data(1, "c", kEndStream),
       kReset1},
      {"8.1.1 more than the content-length in several DATA",
       Headers(1, Post({{"content-length", "2"}}), 0) + Data(1, "a") + Data(1, "b") +
           Data(1, "c", kEndStream),
       kReset1},
      {"8.1.1 a content-length without a body", Headers(1, Post({{"content-length", "1"}})),
       kReset1},
      {"8.1.1 a content-length of 0 without a body", Headers(1, Post({{"content-length", "0"}})),
       "1:200"},
      {"8.1.1 less than the content-length, with trailers",
       Headers(1, Post({{"content-length", "2"}}), 0) + Data(1, "a") + Headers(1, {{"x", "y"}}),
       kReset1},
      {"8.2.1 a name in upper case", with({{"X-Test", "a"}}), kReset1},
      {"8.2.1 a name in mixed case", with({{"x-Test", "a"}}), kReset1},
      {"8.2.1 an empty name", with({{"", "a"}}), kReset1},
      {"8.2.1 a name with a space", with({{"x test", "a"}}), kReset1},
      {"8.2.1 a name with a colon", with({{"x:test", "a"}}), kReset1},
      {"8.2.1 a name that ends with a colon", with({{"x:", "a"}}), kReset1},
      {"8.2.1 a name with CR LF", with({{"x\r\ny", "a"}}), kReset1},
      {"8.2.1 a name with 0x7f", with({{"x\x7f", "a"}}), kReset1},
      {"8.2.1 a name with 0xff", with({{"x\xff", "a"}}), kReset1},
      {"8.2.1 a value with LF", with({{"x", "a\nb"}}), kReset1},
      {"8.2.1 a value with CR", with({{"x", "a\rb"}}), kReset1},
      {"8.2.1 a value with CR LF and a field", with({{"x", "a\r\nb: c"}}), kReset1},
      {"8.2.1 a value with NUL", with({{"x", std::string("a\0b", 3)}}), kReset1},
      {"8.2.1 a value with 0x01", with({{"x", "a\x01"}}), kReset1},
      {"8.2.1 a value with 0x7f", with({{"x", "a\x7f"}}), kReset1},
      {"8.2.1 a value with 0xff", with({{"x", "a\xff"}}), "1:200"},
      {"8.2.1 a value in Latin-1", with({{"x", "caf\xe9"}}), "1:200"},
      {"8.2.1 a value in UTF-8", with({{"x", "\xc3\xa4"}}), "1:200"},
      {"8.2.1 a value with a tab inside", with({{"x", "a\tb"}}), "1:200"},
      {"8.2.1 a value that begins with a space", with({{"x", " a"}}), kReset1},
      {"8.2.1 a value that begins with a tab", with({{"x", "\ta"}}), kReset1},
      {"8.2.1 a value that ends with a space", with({{"x", "a "}}), kReset1},
      {"8.2.1 an empty value", with({{"x", ""}}), "1:200"},
      {"8.2.2 connection", with({{"connection", "keep-alive"}}), kReset1},
      {"8.2.2 keep-alive", with({{"keep-alive", "timeout=5"}}), kReset1},
      {"8.2.2 proxy-connection", with({{"proxy-connection", "keep-alive"}}), kReset1},
      {"8.2.2 transfer-encoding", with({{"transfer-encoding", "chunked"}}), kReset1},
      {"8.2.2 upgrade", with({{"upgrade", "h2c"}}), kReset1},
      {"8.2.2 te: trailers", with({{"te", "trailers"}}), "1:200"},
      {"8.2.2 te: gzip", with({{"te", "gzip"}}), kReset1},
      {"8.2.2 te: trailers and more", with({{"te", "trailers, deflate;q=0.5"}}), kReset1},
      {"8.3 an unknown pseudo field", request(With(Get(), {{":test", "a"}})), kReset1},
      {"8.3 a pseudo field of responses", request(With(Get(), {{":status", "200"}})), kReset1},
      {"8.3 a pseudo field behind a field",
       request({{":method", "GET"},
                {":path", "/"},
                {"x", "y"},
                {":scheme", "http"},
                {":authority", "a.example"}}),
       kReset1},
      {"8.3 :method twice", request(With(Get(), {{":method", "GET"}})), kReset1},
      {"8.3 :scheme twice", request(With(Get(), {{":scheme", "http"}})), kReset1},
      {"8.3 :path twice", request(With(Get(), {{":path", "/"}})), kReset1},
      {"8.3 :authority twice", request(With(Get(), {{":authority", "a.example"}})), kReset1},
      {"8.3.1 no :method",
       request({{":scheme", "http"}, {":path", "/"}, {":authority", "a.example"}}), kReset1},
      {"8.3.1 no :scheme",
       request({{":method", "GET"}, {":path", "/"}, {":authority", "a.example"}}), kReset1},
      {"8.3.1 no :path",
       request({{":method", "GET"}, {":scheme", "http"}, {":authority", "a.example"}}), kReset1},
      {"8.3.1 neither :authority nor host",
       request({{":method", "GET"}, {":scheme", "http"}, {":path", "/"}}), kReset1},
      {"8.3.1 host instead of :authority",
       request({{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {"host", "a.example"}}),
       "1:200"},
      {"8.3.1 an empty :path", request(pseudo("GET", "http", "")), kReset1},
      {"8.3.1 an empty :method", request(pseudo("", "http", "/")), kReset1},
      {"8.3.1 an empty :scheme", request(pseudo("GET", "", "/")), kReset1},
      {"8.3.1 an empty :authority",
       request({{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {":authority", ""}}),
       kReset1},
      {"8.3.1 * of OPTIONS", request(pseudo("OPTIONS", "http", "*")), "1:200"},
      {"8.3.1 * of GET", request(pseudo("GET", "http", "*")), kReset1},
      {"8.3 a pseudo field in trailers", trailer({{":method", "GET"}}), kReset1},
      {"8.3 an empty block", HeadersWith(1, ""), kReset1},
  });
}

// Heads that are valid in HTTP/2, but that readers of HTTP/1 could take for different requests.
TEST(Conformance, WhatIsAmbiguousInHttp1) {
  const auto pseudo = [](std::string_view method, std::string_view scheme, std::string_view path,
                         std::string_view authority) {
    return Headers(1, {{":method", std::string(method)},
                       {":scheme", std::string(scheme)},
                       {":path", std::string(path)},
                       {":authority", std::string(authority)}});
  };
  const auto path = [&](std::string_view text) { return pseudo("GET", "http", text, "a.example"); };
  const auto authority = [&](std::string_view text) { return pseudo("GET", "http", "/", text); };
  const auto method = [&](std::string_view text) { return pseudo(text, "http", "/", "a.example"); };
  const auto with = [](const Pairs& more) { return Headers(1, With(Get(), more)); };
  const auto length = [](const std::string& text) {
    return Headers(1, Post({{"content-length", text}}), 0) + Data(1, "abc", kEndStream);
  };
  const auto trailer = [](const Pairs& trailers) {
    return Headers(1, Post(), 0) + Headers(1, trailers);
  };
  Check({
      {"host and :authority agree", with({{"host", "a.example"}}), "1:200"},
      {"host and :authority agree but for case", with({{"host", "A.example"}}), "1:200"},
      {"host and :authority differ", with({{"host", "b.example"}}), kReset1},
      {"an empty host beside :authority", with({{"host", ""}}), kReset1},
      {"host twice", with({{"host", "a.example"}, {"host", "a.example"}}), kReset1},
      {"a user in :authority", authority("user@a.example"), kReset1},
      {"a user and a password", authority("a:b@a.example"), kReset1},
      {"a path in :authority", authority("a.example/x"), kReset1},
      {"a space in :authority", authority("a b"), kReset1},
      {"two hosts in :authority", authority("a.example,b.example:x"), kReset1},
      {"a port that is no number", authority("a.example:http"), kReset1},
      {"two hosts without a port", authority("a.example,b.example"), kReset1},
      {"an empty port", authority("a.example:"), kReset1},
      {"a port of six digits", authority("a.example:000080"), kReset1},
      {"an empty port in host",
       Headers(1, {{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {"host", "a:"}}),
       kReset1},
      {"a port", authority("a.example:8080"), "1:200"},
      {"an IPv6 address", authority("[::1]:80"), "1:200"},
      {"brackets without an address", authority("[a]"), kReset1},
      {"an escape in :authority", authority("a%2eexample"), kReset1},
      {"a method in lower case", method("get"), kReset1},
      {"a method with a space", method("GET /x HTTP/1.1"), kReset1},
      {"a method with CR LF", method("GET\r\n"), kReset1},
      {"a method with a slash", method("GET/"), kReset1},
      {"a method that nobody knows", method("M-SEARCH"), "1:200"},
      {":scheme ftp", pseudo("GET", "ftp", "/", "a.example"), kReset1},
      {":scheme with a space", pseudo("GET", "http ", "/", "a.example"), kReset1},
      {":scheme in upper case", pseudo("GET", "HTTPS", "/", "a.example"), "1:200"},
      {"a relative path", path("x"), kReset1},
      {"an absolute target", path("http://a.example/"), kReset1},
      {"a path with #", path("/a#b"), kReset1},
      {"a path with a space", path("/a b"), kReset1},
      {"a path with a space and a version", path("/ HTTP/1.1"), kReset1},
      {"a path with a tab", path("/a\tb"), kReset1},
      {"a path with CR LF", path("/a\r\nx: y"), kReset1},
      {"a path with NUL", path(std::string_view("/a\0b", 4)), kReset1},
      {"a path with 0x7f", path("/a\x7f"), kReset1},
      {"a path with 0xff", path("/a\xff"), kReset1},
      {"a path with UTF-8", path("/\xc3\xa4"), kReset1},
      {"a path with a query", path("/a?b=c&d=%20"), "1:200"},
      {"a path that begins with //", path("//b.example/x"), "1:200"},
      {"content-length: 3", length("3"), "1:200"},
      {"content-length: 03", length("03"), kReset1},
      {"content-length: +3", length("+3"), kReset1},
      {"content-length: -3", length("-3"), kReset1},
      {"content-length: 3, 3", length("3, 3"), kReset1},
      {"content-length: 0x3", length("0x3"), kReset1},
      {"content-length: 3.", length("3."), kReset1},
      {"content-length: nothing", length(""), kReset1},
      {"content-length: 2^63", length("9223372036854775808"), kReset1},
      {"content-length: 2^64 + 3", length("18446744073709551619"), kReset1},
      {"content_length", with({{"content_length", "3"}}), kReset1},
      {"transfer_encoding", with({{"transfer_encoding", "chunked"}}), kReset1},
      {"content-length twice",
       Headers(1, Post({{"content-length", "3"}, {"content-length", "3"}}), 0) +
           Data(1, "abc", kEndStream),
       kReset1},
      {"trailers with content-length", trailer({{"content-length", "0"}}), kReset1},
      {"trailers with host", trailer({{"host", "a.example"}}), kReset1},
      {"trailers with te", trailer({{"te", "trailers"}}), kReset1},
      {"trailers with authorization", trailer({{"authorization", "x"}}), kReset1},
      {"trailers with content-type", trailer({{"content-type", "x"}}), kReset1},
      {"trailers with transfer-encoding", trailer({{"transfer-encoding", "chunked"}}), kReset1},
      {"trailers with cookie", trailer({{"cookie", "a=b"}}), kReset1},
      {"trailers with set-cookie", trailer({{"set-cookie", "a=b"}}), kReset1},
      {"trailers with x-forwarded-for", trailer({{"x-forwarded-for", "10.0.0.1"}}), kReset1},
      {"trailers with x_forwarded_for", trailer({{"x_forwarded_for", "10.0.0.1"}}), kReset1},
      {"trailers with forwarded", trailer({{"forwarded", "for=10.0.0.1"}}), kReset1},
      {"trailers with via", trailer({{"via", "2 a"}}), kReset1},
      {"trailers with proxy-authorization", trailer({{"proxy-authorization", "x"}}), kReset1},
      {"trailers with cache-control", trailer({{"cache-control", "no-store"}}), kReset1},
      {"trailers with content_length", trailer({{"content_length", "0"}}), kReset1},
      {"trailers with content_type", trailer({{"content_type", "x"}}), kReset1},
      {"trailers with http2-settings", trailer({{"http2-settings", "x"}}), kReset1},
      {"trailers with expect", trailer({{"expect", "100-continue"}}), kReset1},
      {"trailers of gRPC", trailer({{"grpc-status", "0"}, {"grpc-message", "x"}}), "1:200"},
      {"trailers with LF in a value", trailer({{"x", "a\nb"}}), kReset1},
      {"expect: 100-continue", with({{"expect", "100-continue"}}), "1:200"},
      {"expect: 100-Continue", with({{"expect", "100-Continue"}}), "1:200"},
      {"another expectation", with({{"expect", "200-ok"}}), "1:417"},
      {"two expectations", with({{"expect", "100-continue"}, {"expect", "100-continue"}}), kReset1},
  });
}

TEST(Conformance, Connect) {
  const auto connect = [](const Pairs& fields, int flags = 0) { return Headers(1, fields, flags); };
  const Pairs tunnel = {{":method", "CONNECT"},
                        {":protocol", "websocket"},
                        {":scheme", "https"},
                        {":path", "/chat"},
                        {":authority", "a.example"}};
  Pairs get = tunnel;
  get[0].second = "GET";
  const auto of = [&](const std::string& protocol) {
    Pairs fields = tunnel;
    fields[1].second = protocol;
    return connect(fields);
  };
  Check({
      {"8.5 CONNECT is refused", connect({{":method", "CONNECT"}, {":authority", "a.example:443"}}),
       "1:501"},
      {"8.5 CONNECT without :authority", connect({{":method", "CONNECT"}}), kReset1},
      {"8.5 CONNECT with :path",
       connect({{":method", "CONNECT"}, {":path", "/"}, {":authority", "a.example:443"}}), kReset1},
      {"8.5 CONNECT with :scheme",
       connect({{":method", "CONNECT"}, {":scheme", "http"}, {":authority", "a.example:443"}}),
       kReset1},
      {"8.5 CONNECT with content-length",
       connect({{":method", "CONNECT"}, {":authority", "a.example:443"}, {"content-length", "3"}}),
       kReset1},
      {"8441 4 a tunnel is the application's affair", connect(tunnel), "", Case::kSilent},
      // Such a tunnel would be another connection of HTTP, with requests that nobody judges.
      {"8441 4 a tunnel of h2c", of("h2c"), "1:501"},
      {"8441 4 a tunnel of H2C", of("H2C"), "1:501"},
      {"8441 4 a tunnel of h2", of("h2"), "1:501"},
      {"8441 4 a tunnel of TLS", of("TLS"), "1:501"},
      {"8441 4 a tunnel of http", of("http"), "1:501"},
      {"8441 4 a tunnel of HTTP/2.0", of("HTTP/2.0"), kReset1},
      {"8441 4 a tunnel of TLS/1.0", of("TLS/1.0"), kReset1},
      {"8441 4 a tunnel of another protocol", of("h2cx"), "", Case::kSilent},
      {"8441 4 :protocol without CONNECT", connect(get), kReset1},
      {"8441 4 :protocol twice",
       connect({{":method", "CONNECT"},
                {":protocol", "a"},
                {":protocol", "b"},
                {":scheme", "https"},
                {":path", "/"},
                {":authority", "a.example"}}),
       kReset1},
      {"8441 4 :protocol that is no token",
       connect({{":method", "CONNECT"},
                {":protocol", "web socket"},
                {":scheme", "https"},
                {":path", "/"},
                {":authority", "a.example"}}),
       kReset1},
      {"8441 4 :protocol without :path",
       connect({{":method", "CONNECT"},
                {":protocol", "websocket"},
                {":scheme", "https"},
                {":authority", "a.example"}}),
       kReset1},
      {"8441 4 a tunnel with content-length", connect(With(tunnel, {{"content-length", "3"}})),
       kReset1},
  });
}

// ---- RFC 7541

TEST(Conformance, Hpack) {
  const std::string get = GetBlock();
  // A literal value of one byte, with Huffman coding.
  const auto huffman = [&](std::string_view code) {
    return HeadersWith(1, get + std::string("\0", 1) + HpackText("x") +
                              HpackInteger(code.size(), 7, 0x80) + std::string(code));
  };
  Check({
      {"2.3.3 an index beyond both tables", HeadersWith(1, get + "\xc6"), kCompression},
      {"2.3.3 a name beyond both tables",
       HeadersWith(1, get + HpackInteger(70, 6, 0x40) + HpackText("a")), kCompression},
      {"4.2 a table size update behind a field", HeadersWith(1, get + "\x20"), kCompression},
      {"4.2 a table size update in front", HeadersWith(1, "\x20" + get), "1:200"},
      {"4.2 two table size updates in front",
       HeadersWith(1,
                   "\x20"
                   "\x3f\x01" +
                       get),
       "1:200"},
      {"5.1 an integer of 2^32 and more", HeadersWith(1, get + "\xff\xff\xff\xff\xff\xff\x7f"),
       kCompression},
      {"5.2 Huffman", huffman("\x1f"), "1:200"},
      {"5.2 padding of 8 bits", huffman("\x1f\xff"), kCompression},
      {"5.2 padding with zeros", huffman("\x18"), kCompression},
      {"5.2 EOS", huffman("\xff\xff\xff\xff"), kCompression},
      {"5.2 a text beyond the block",
       HeadersWith(1, get + std::string("\0\x7f"
                                        "abc",
                                        5)),
       kCompression},
      {"6.1 index 0", HeadersWith(1, get + "\x80"), kCompression},
      {"6.1 fields of the static table",
       HeadersWith(1, "\x82\x86\x84" + std::string("\x41") + HpackText("a.example")), "1:200"},
      {"6.2.1 a literal with indexing, used at once",
       HeadersWith(1, get + "\x40" + HpackText("x") + HpackText("y") + "\xbe"), "1:200"},
      {"6.2.3 a literal that is never indexed",
       HeadersWith(1, get + "\x10" + HpackText("x") + HpackText("y")), "1:200"},
      {"6.3 a table larger than allowed", HeadersWith(1, HpackInteger(4097, 5, 0x20) + get),
       kCompression},
      {"6.3 a table as large as allowed", HeadersWith(1, HpackInteger(4096, 5, 0x20) + get),
       "1:200"},
      {"4.4 an entry larger than the table empties it",
       HeadersWith(1, get + "\x40" + HpackText("x") + HpackText(std::string(5000, 'a'))) +
           HeadersWith(3, get + "\xbe"),
       kCompression},
  });
}

// Each representation of RFC 7541, 6.2, with a name from the static table and with a new one, plain
// and with Huffman coding. `a` is 00011, so "a" is 0x1f; 'user-agent' is entry 58.
TEST(Conformance, HpackLiterals) {
  const std::string huffman = std::string("\x81\x1f");
  for (const auto& [first, prefix_bits] :
       {std::pair(0x40, 6), std::pair(0x00, 4), std::pair(0x10, 4)}) {
    for (const std::string& value : {HpackText("a"), huffman}) {
      for (const std::string& name : {HpackInteger(58, prefix_bits, first),
                                      std::string(1, static_cast<char>(first)) + HpackText("a"),
                                      std::string(1, static_cast<char>(first)) + huffman}) {
        const std::string block = GetBlock() + name + value;
        for (size_t split = 0; split < block.size(); ++split) {
          RawServer server;
          server.AnswerAll();
          const std::string frame = HeadersWith(1, block);
          (void)server.Say(std::string_view(frame).substr(0, split));
          EXPECT_EQ(Outcome(server.Say(std::string_view(frame).substr(split))), "1:200");
          ASSERT_EQ(server.application.requests.size(), 1u);
          const auto& fields = server.application.requests[0]->head.fields;
          const std::string_view expected =
              name.ends_with(huffman) || name.ends_with('a') ? "a" : "user-agent";
          EXPECT_EQ(fields.Find(expected), "a") << first << " split at " << split;
        }
      }
    }
  }
}

TEST(Conformance, TheDynamicTableLastsFromBlockToBlock) {
  RawServer server;
  server.AnswerAll();
  const std::string field = "\x40" + HpackText("x") + HpackText("y");
  EXPECT_EQ(
      Outcome(server.Say(HeadersWith(1, GetBlock() + field) + HeadersWith(3, GetBlock() + "\xbe"))),
      "1:200, 3:200");
  for (const auto& request : server.application.requests)
    EXPECT_EQ(request->head.fields.Find("x"), "y");
}

}  // namespace conformance_test
}  // namespace headgate::http::http2
