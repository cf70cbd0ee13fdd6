// The frames that RFC 9113 and RFC 7541 forbid to a server, and some that they allow, against a
// client that has asked for stream 1. The names begin with the section. Each case is replayed in
// two parts, split at every byte. Responses are in client_session_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "headgate/http/http2/test_raw_client.h"
#include "headgate/http/http2/test_split_cases.h"

namespace headgate::http::http2 {
namespace client_conformance_test {

struct Case {
  std::string name;
  std::string bytes;     // after SETTINGS
  std::string expected;  // see Outcome
};

std::string Replay(const Case& test, size_t split) {
  RawClient client;
  client.Begin("GET");
  (void)client.Say("");
  const std::string_view bytes = test.bytes;
  std::vector<std::string> lines = client.Say(bytes.substr(0, split));
  for (std::string& line : client.Say(bytes.substr(split))) lines.push_back(std::move(line));
  const std::string outcome = Outcome(lines);
  if (outcome.starts_with("GOAWAY")) {
    EXPECT_TRUE(client.session.finished());
    EXPECT_EQ(client.session.open_exchanges(), 0u);
  }
  return outcome;
}

void Check(const std::vector<Case>& cases) { CheckSplitCases(cases, Replay); }

Pairs Ok() { return {{":status", "200"}}; }
std::string HeadersWith(uint32_t stream, std::string_view block, int flags = kEndStream) {
  return Frame(kTHeaders, flags | kEndHeaders, stream, block);
}
const std::string kProtocol = "GOAWAY PROTOCOL_ERROR";
const std::string kFrameSize = "GOAWAY FRAME_SIZE_ERROR";
const std::string kCompression = "GOAWAY COMPRESSION_ERROR";
const std::string kFlow = "GOAWAY FLOW_CONTROL_ERROR";

TEST(ClientConformance, Preface) {
  for (const auto& [bytes, expected] :
       {std::pair(Settings(), std::string("SETTINGS ack")), std::pair(Ping(), kProtocol),
        std::pair(Settings("", kAck), kProtocol), std::pair(Headers(1, Ok()), kProtocol),
        std::pair(std::string("HTTP/1.1 200 OK\r\n\r\n"), kProtocol)}) {
    for (size_t split = 0; split <= bytes.size(); ++split) {
      RawClient client("");
      std::vector<std::string> lines = client.Say(std::string_view(bytes).substr(0, split));
      for (std::string& line : client.Say(std::string_view(bytes).substr(split)))
        lines.push_back(std::move(line));
      ASSERT_EQ(Outcome(lines), expected) << "3.4, split at " << split;
    }
  }
}

TEST(ClientConformance, Frames) {
  const std::string head = Headers(1, Ok(), 0);
  Check({
      {"4.1 an unknown type is ignored", Frame(0xbe, 0, 0, "12345678") + Ping(), "PING ack"},
      {"4.1 unknown flags are ignored", Frame(kTPing, 0xfe, 0, "12345678"), "PING ack"},
      {"4.1 the reserved bit is ignored", Frame(kTPing, 0, 0x80000000, "12345678"), "PING ack"},
      {"4.2 DATA of 2^14 bytes", head + Data(1, std::string(16384, 'a'), kEndStream) + Ping(),
       "PING ack"},
      {"4.2 DATA of 2^14 + 1 bytes", head + Data(1, std::string(16385, 'a'), kEndStream),
       kFrameSize},
      {"4.2 HEADERS of 2^14 + 1 bytes",
       HeadersWith(1, Block(Ok()) + Literal("x", std::string(16400, 'a'))), kFrameSize},
      {"4.3 a block that is no HPACK", HeadersWith(1, "\xff\xff\xff\xff\xff\xff\xff\xff"),
       kCompression},
      {"5.5 an unknown type on a stream", Frame(0xbe, 0, 1, "1234") + Ping(), "PING ack"},
      {"5.5 an unknown type within a block",
       Frame(kTHeaders, 0, 1, Block(Ok())) + Frame(0xbe, 0, 1, "1234"), kProtocol},
  });
}

TEST(ClientConformance, StreamStates) {
  const std::string ended = Headers(1, Ok());
  const std::string reset = Headers(1, Ok(), 0) + Reset(1, 2);
  const auto fragment = [](uint32_t stream) {
    return Frame(kTContinuation, kEndHeaders, stream, Block(Ok()));
  };
  Check({
      {"5.1 idle: DATA", Data(3, "a", kEndStream), kProtocol},
      {"5.1 idle: HEADERS", Headers(3, Ok()), kProtocol},
      {"5.1 idle: RST_STREAM", Reset(3, 8), kProtocol},
      {"5.1 idle: WINDOW_UPDATE", WindowUpdate(3, 100), kProtocol},
      {"5.1 idle: CONTINUATION", fragment(3), kProtocol},
      {"5.1 reset: CONTINUATION", reset + fragment(1), kProtocol},
      {"5.1 ended: CONTINUATION", ended + fragment(1), kProtocol},
      // They may cross the end.
      {"5.1 ended: WINDOW_UPDATE and RST_STREAM", ended + WindowUpdate(1, 1) + Reset(1, 0) + Ping(),
       "PING ack"},
      {"5.1.1 a stream of the server", Headers(2, Ok()), kProtocol},
      {"5.4.1 the connection ends after an error", Frame(kTPing, 0, 0, "1") + Ping(), kFrameSize},
  });
}

// RFC 9113, 5.1 lets a client treat them as an error of the stream or of the connection. Their
// bytes must not become part of any response, and the connection carries no other exchange.
TEST(ClientConformance, LateFramesOfAStreamThatHasEnded) {
  const std::string ended = Headers(1, Ok(), 0) + Data(1, "ab", kEndStream);
  const std::string reset = Headers(1, Ok(), 0) + Data(1, "ab") + Reset(1, 2);
  for (const std::string& before : {ended, reset}) {
    for (const std::string& late : {Data(1, "late", kEndStream), Headers(1, Ok())}) {
      RawClient client;
      TestResponse& first = client.Begin("GET");
      TestResponse& second = client.Begin("GET");
      (void)client.Say("");
      (void)client.Say(before);
      const std::string body = first.body;
      const std::string outcome = Outcome(client.Say(late));
      EXPECT_TRUE(outcome.empty() || outcome == "GOAWAY STREAM_CLOSED") << outcome;
      EXPECT_EQ(first.body, body);
      EXPECT_EQ(second.body, "");
    }
  }
}

TEST(ClientConformance, DataHeadersPriorityReset) {
  const std::string head = Headers(1, Ok(), 0);
  Check({
      {"6.1 DATA of stream 0", head + Data(0, "a"), kProtocol},
      {"6.1 padded DATA",
       head + Frame(kTData, kEndStream | kPadded, 1, std::string("\x02") + "a12") + Ping(),
       "PING ack"},
      {"6.1 more padding than payload",
       head + Frame(kTData, kEndStream | kPadded, 1, std::string("\x09") + "a12"), kProtocol},
      {"6.2 HEADERS of stream 0", HeadersWith(0, Block(Ok())), kProtocol},
      {"6.2 padded HEADERS",
       HeadersWith(1, "\x02" + Block(Ok()) + "12", kEndStream | kPadded) + Ping(), "PING ack"},
      {"6.2 more padding than payload", HeadersWith(1, "\xff" + Block(Ok()), kEndStream | kPadded),
       kProtocol},
      {"6.2 PRIORITY within a block",
       Frame(kTHeaders, kEndStream, 1, Block(Ok())) + Frame(kTPriority, 0, 1, Number(0, 5)),
       kProtocol},
      {"6.3 PRIORITY of stream 0", Frame(kTPriority, 0, 0, Number(3, 5)), kProtocol},
      {"6.3 PRIORITY of 4 bytes", Frame(kTPriority, 0, 1, Number(0, 4)), kFrameSize},
      {"6.4 RST_STREAM of stream 0", Reset(0, 8), kProtocol},
      {"6.4 RST_STREAM of 3 bytes", Frame(kTReset, 0, 1, "123"), kFrameSize},
      {"7 RST_STREAM with an unknown error", Reset(1, 0xff) + Ping(), "PING ack"},
  });
}

TEST(ClientConformance, SettingsPushPingGoaway) {
  Check({
      {"6.5 an ACK with a payload", Settings(Setting(3, 1), kAck), kFrameSize},
      {"6.5 on a stream", Frame(kTSettings, 0, 1, Setting(3, 1)), kProtocol},
      {"6.5 of 5 bytes", Settings("12345"), kFrameSize},
      {"6.5.2 ENABLE_PUSH of 0", Settings(Setting(2, 0)), "SETTINGS ack"},
      {"6.5.2 ENABLE_PUSH of 1, which only a client may send", Settings(Setting(2, 1)), kProtocol},
      {"6.5.2 INITIAL_WINDOW_SIZE of 2^31", Settings(Setting(4, 0x80000000)), kFlow},
      {"6.5.2 MAX_FRAME_SIZE of 2^14 - 1", Settings(Setting(5, 16383)), kProtocol},
      {"6.5.2 MAX_FRAME_SIZE of 2^24", Settings(Setting(5, 1 << 24)), kProtocol},
      {"6.5.2 an unknown setting", Settings(Setting(0xff, 1)), "SETTINGS ack"},
      {"6.5.3 each is acknowledged", Settings() + Settings(), "SETTINGS ack, SETTINGS ack"},
      {"6.6 PUSH_PROMISE, which was switched off",
       Frame(kTPush, kEndHeaders, 1, Number(2, 4) + Block(Get())), kProtocol},
      {"6.7 PING", Ping(), "PING ack"},
      {"6.7 a PING with ACK is not answered", Ping(kAck), ""},
      {"6.7 PING on a stream", Frame(kTPing, 0, 1, "12345678"), kProtocol},
      {"6.7 PING of 7 bytes", Frame(kTPing, 0, 0, "1234567"), kFrameSize},
      {"6.8 GOAWAY on a stream", Frame(kTGoaway, 0, 1, Number(1, 8)), kProtocol},
      {"6.8 GOAWAY of 7 bytes", Frame(kTGoaway, 0, 0, Number(0, 7)), kFrameSize},
      {"7 GOAWAY with an unknown error",
       Frame(kTGoaway, 0, 0, Number(1, 4) + Number(0xff, 4)) + Ping(), "PING ack"},
  });
}

TEST(ClientConformance, WindowUpdateContinuation) {
  const std::string begun = Frame(kTHeaders, kEndStream, 1, Block(Ok()));
  const auto more = [](int flags, std::string_view block, uint32_t stream = 1) {
    return Frame(kTContinuation, flags, stream, block);
  };
  Check({
      {"6.9 an increment of 0", WindowUpdate(0, 0), kProtocol},
      {"6.9 an increment of 0 on a stream", WindowUpdate(1, 0), kProtocol},
      {"6.9 of 3 bytes", Frame(kTWindow, 0, 0, "123"), kFrameSize},
      {"6.9.1 a window of more than 2^31 - 1",
       WindowUpdate(0, 0x7fffffff) + WindowUpdate(0, 0x7fffffff), kFlow},
      {"6.9.1 a stream's window of more than 2^31 - 1", WindowUpdate(1, 0x7fffffff),
       "RST 1 FLOW_CONTROL_ERROR"},
      {"6.10 a block in three frames",
       begun + more(0, Literal("x", "y")) + more(kEndHeaders, Literal("z", "y")) + Ping(),
       "PING ack"},
      {"6.10 DATA within a block", begun + Data(1, "a"), kProtocol},
      {"6.10 CONTINUATION of stream 0", begun + more(kEndHeaders, "", 0), kProtocol},
      {"6.10 CONTINUATION of another stream", begun + more(kEndHeaders, "", 3), kProtocol},
      {"6.10 after END_HEADERS", Headers(1, Ok(), 0) + more(kEndHeaders, ""), kProtocol},
      {"6.10 after END_HEADERS of CONTINUATION",
       Frame(kTHeaders, 0, 1, Block(Ok())) + more(kEndHeaders, "") + more(kEndHeaders, ""),
       kProtocol},
      {"6.10 after DATA", Headers(1, Ok(), 0) + Data(1, "a") + more(kEndHeaders, ""), kProtocol},
  });
}

TEST(ClientConformance, Hpack) {
  const std::string ok = Block(Ok());
  Check({
      {"2.3.3 an index beyond both tables", HeadersWith(1, ok + "\xc6"), kCompression},
      {"2.3.3 a name beyond both tables",
       HeadersWith(1, ok + HpackInteger(70, 6, 0x40) + HpackText("a")), kCompression},
      {"4.2 a table size update behind a field", HeadersWith(1, ok + "\x20"), kCompression},
      {"5.2 padding of 8 bits", HeadersWith(1, ok + std::string("\0\x01x\x82\x1f\xff", 6)),
       kCompression},
      {"6.1 index 0", HeadersWith(1, ok + "\x80"), kCompression},
      {"6.1 a status of the static table", HeadersWith(1, "\x88") + Ping(), "PING ack"},
      {"6.3 a table larger than allowed", HeadersWith(1, HpackInteger(4097, 5, 0x20) + ok),
       kCompression},
  });
}

}  // namespace client_conformance_test
}  // namespace headgate::http::http2
