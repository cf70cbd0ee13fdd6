// Floods: cheap frames that make the server work. Each is bounded, counted, and ends with
// GOAWAY(ENHANCE_YOUR_CALM); the same frames at an honest pace pass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "headgate/http/http2/flood_guard.h"
#include "headgate/http/http2/test_raw_server.h"

namespace headgate::http::http2 {
namespace flood_test {

using namespace std::chrono_literals;
using Kind = Flood;

// Stream numbers that rise from call to call.
using MakeFrames = std::function<std::string(uint32_t stream)>;

struct FloodCase {
  std::string name;
  Kind kind;
  MakeFrames frames;
  int burst;                // this many pass at once
  base::Duration interval;  // one more passes in this time
};

const std::vector<FloodCase>& Floods() {
  static const std::vector<FloodCase> cases = {
      {"rapid reset", Kind::kResets,
       [](uint32_t stream) { return Headers(stream, Post(), 0) + Reset(stream, 8); }, 1000, 30ms},
      {"malformed heads", Kind::kProvoked,
       [](uint32_t stream) {
         return Headers(stream, {{":method", "GET"}});
       },
       100, 100ms},
      {"bodies of another length", Kind::kProvoked,
       [](uint32_t stream) {
         return Headers(stream, Post({{"content-length", "1"}}), 0) + Data(stream, "ab");
       },
       100, 100ms},
      {"windows that overflow", Kind::kProvoked,
       [](uint32_t stream) {
         return Headers(stream, Post(), 0) + WindowUpdate(stream, 0x7fffffff);
       },
       100, 100ms},
      {"heads that are refused", Kind::kProvoked,
       [](uint32_t stream) {
         return Headers(stream, With(Get(), {{"expect", "x"}}));
       },
       100, 100ms},
      {"PING", Kind::kPings, [](uint32_t) { return Ping(); }, 200, 50ms},
      {"SETTINGS", Kind::kSettings, [](uint32_t) { return Settings(); }, 49, 1s},
      {"PRIORITY", Kind::kPriorities,
       [](uint32_t stream) { return Frame(kTPriority, 0, stream, Number(0, 5)); }, 200, 50ms},
      {"PRIORITY_UPDATE", Kind::kPriorities,
       [](uint32_t) { return Frame(0x10, 0, 0, Number(1, 4) + "u=1"); }, 200, 50ms},
      {"unknown frames", Kind::kUnknownFrames, [](uint32_t) { return Frame(0xbe, 0, 0, "x"); }, 100,
       100ms},
      {"windows of one byte", Kind::kWindowUpdates, [](uint32_t) { return WindowUpdate(0, 1); },
       1000, 10ms},
  };
  return cases;
}

uint64_t CountOf(const RawServer& server, Kind kind) {
  return server.counters.floods[static_cast<size_t>(kind)].value();
}

// Whether the server still takes what it is sent.
bool IsOpen(RawServer& server, const std::vector<std::string>& lines) {
  if (!server.closed) return true;
  EXPECT_THAT(lines.back(), ::testing::EndsWith("ENHANCE_YOUR_CALM"));
  EXPECT_TRUE(server.progress.protocol_error);
  return false;
}

TEST(Flood, ABurstPassesAndMoreDoesNot) {
  for (const FloodCase& test : Floods()) {
    SCOPED_TRACE(test.name);
    RawServer server;
    uint32_t stream = 1;
    int passed = 0;
    for (; passed <= test.burst; ++passed, stream += 2) {
      if (!IsOpen(server, server.Say(test.frames(stream)))) break;
    }
    EXPECT_EQ(passed, test.burst);
    EXPECT_EQ(CountOf(server, test.kind), 1u);
    EXPECT_EQ(server.application.open(), 0u) << "nothing is left of it";
  }
}

TEST(Flood, ItIsBoundedWithinOneRead) {
  for (const FloodCase& test : Floods()) {
    SCOPED_TRACE(test.name);
    RawServer server;
    std::string bytes;
    uint32_t stream = 1;
    for (int i = 0; i < 4 * test.burst; ++i, stream += 2) bytes += test.frames(stream);
    const std::vector<std::string> lines = server.Say(bytes);
    EXPECT_TRUE(server.closed);
    EXPECT_LE(server.application.requests.size(), static_cast<size_t>(test.burst) + 1);
    // Before our resets leave, their streams count as open, and the client must not open others.
    if (test.kind == Kind::kProvoked) continue;
    EXPECT_THAT(lines.back(), ::testing::EndsWith("ENHANCE_YOUR_CALM"));
    EXPECT_EQ(CountOf(server, test.kind), 1u);
  }
}

TEST(Flood, AtAnHonestPaceItPasses) {
  for (const FloodCase& test : Floods()) {
    SCOPED_TRACE(test.name);
    RawServer server;
    uint32_t stream = 1;
    base::Instant now = kNow;
    for (int i = 0; i < 3 * test.burst && !server.closed; ++i, stream += 2) {
      now += test.interval;
      (void)server.Say(test.frames(stream), now);
    }
    EXPECT_FALSE(server.closed);
  }
}

TEST(Flood, EmptyData) {
  RawServer server;
  (void)server.Say(Headers(1, Post(), 0));
  for (int i = 0; i < 20; ++i) (void)server.Say(Data(1, ""));
  EXPECT_FALSE(server.closed);
  EXPECT_FALSE(IsOpen(server, server.Say(Data(1, ""))));
  EXPECT_EQ(CountOf(server, Kind::kEmptyData), 1u);
  EXPECT_TRUE(server.application.last().aborted);
}

TEST(Flood, DataOfNothingButPadding) {
  RawServer server;
  (void)server.Say(Headers(1, Post(), 0));
  const std::string frame = Frame(kTData, kPadded, 1, std::string(1, '\x04') + "1234");
  for (int i = 0; i < 20; ++i) (void)server.Say(frame);
  EXPECT_FALSE(server.closed);
  EXPECT_FALSE(IsOpen(server, server.Say(frame)));
  EXPECT_EQ(CountOf(server, Kind::kEmptyData), 1u);
}

// Data in very small frames is honest: gRPC sends messages of a few bytes.
TEST(Flood, SmallDataIsNone) {
  RawServer server;
  (void)server.Say(Headers(1, Post(), 0));
  for (int i = 0; i < 10'000; ++i) (void)server.Say(Data(1, "a"));
  EXPECT_FALSE(server.closed);
  EXPECT_EQ(server.application.last().body.size(), 10'000u);
}

// ---- Header blocks

TEST(Flood, ContinuationsWithoutEnd) {
  RawServer server;
  std::string bytes = Frame(kTHeaders, kEndStream, 1, Block(Get()));
  for (int i = 0; i < 7; ++i) bytes += Frame(kTContinuation, 0, 1, Literal("x", "y"));
  (void)server.Say(bytes);
  EXPECT_FALSE(server.closed);
  EXPECT_TRUE(server.progress.mid_request) << "the request timeout is running";
  EXPECT_FALSE(IsOpen(server, server.Say(Frame(kTContinuation, 0, 1, Literal("x", "y")))));
  EXPECT_EQ(CountOf(server, Kind::kContinuations), 1u);
}

TEST(Flood, EmptyContinuations) {
  RawServer server;
  std::string bytes = Frame(kTHeaders, kEndStream, 1, Block(Get()));
  for (int i = 0; i < 8; ++i) bytes += Frame(kTContinuation, 0, 1, "");
  EXPECT_FALSE(IsOpen(server, server.Say(bytes)));
  EXPECT_EQ(CountOf(server, Kind::kContinuations), 1u);
}

TEST(Flood, ALargeBlockInFewFrames) {
  RawServer server;
  std::string bytes = Frame(kTHeaders, kEndStream, 1, Block(Get()));
  const std::string part = Literal("x", std::string(16'000, 'a'));
  for (int i = 0; i < 8; ++i) bytes += Frame(kTContinuation, 0, 1, part + std::string(1, '\xbf'));
  (void)server.Say(bytes);
  EXPECT_TRUE(server.closed);
  EXPECT_TRUE(server.application.requests.empty());
}

// 4,000 bytes in the dynamic table, then one byte for each copy.
std::string Bomb(size_t copies) {
  return Block(Get()) + "\x40" + HpackText("x") + HpackText(std::string(4000, 'a')) +
         std::string(copies, '\xbe');
}

TEST(Flood, ABombOfHpack) {
  RawServer server;
  const std::string bomb = Bomb(12'000);
  EXPECT_FALSE(IsOpen(server, server.Say(Frame(kTHeaders, kEndStream | kEndHeaders, 1, bomb))));
  EXPECT_EQ(CountOf(server, Kind::kFields), 1u);
  EXPECT_TRUE(server.application.requests.empty());
}

TEST(Flood, ABombOfTrailers) {
  RawServer server;
  (void)server.Say(Headers(1, Post(), 0));
  const std::string bomb =
      "\x40" + HpackText("x") + HpackText(std::string(4000, 'a')) + std::string(12'000, '\xbe');
  EXPECT_FALSE(IsOpen(server, server.Say(Frame(kTHeaders, kEndStream | kEndHeaders, 1, bomb))));
  EXPECT_EQ(CountOf(server, Kind::kFields), 1u);
  EXPECT_TRUE(server.application.last().aborted);
}

TEST(Flood, AHeadBeyondTheBoundsIsAnswered) {
  for (const bool bytes : {false, true}) {
    RawServer server;
    server.AnswerAll();
    // 64 KiB, with 32 for each field; or 100 fields, four of which are there already.
    const std::string most = bytes ? Bomb(15) : Block(Get()) + [] {
      std::string fields;
      for (int i = 0; i < 96; ++i) fields += Literal("x", "y");
      return fields;
    }();
    const std::string more = most + (bytes ? "\xbe" : Literal("x", "y"));
    EXPECT_THAT(server.Say(Frame(kTHeaders, kEndStream | kEndHeaders, 1, most)),
                ::testing::ElementsAre("HEADERS 1 end :status=200"));
    EXPECT_THAT(server.Say(Frame(kTHeaders, kEndHeaders, 3, more)),
                ::testing::ElementsAre("HEADERS 3 end :status=431 content-length=0"));
    EXPECT_EQ(server.application.requests.size(), 1u);
    EXPECT_EQ(server.counters.refused_heads.value(), 1u);
    EXPECT_THAT(server.Say(Headers(5, Get())), ::testing::ElementsAre("HEADERS 5 end :status=200"))
        << "HPACK is still in step";
  }
}

// ---- Clients that do not read

TEST(Flood, AConnectionThatTakesNoOutputIsNotRead) {
  RawServer server(RawServer::Start::kReady, {.unsent_bytes_max = 300'000});
  server.application.on_end = [](TestRequest& request) {
    request.exchange->SendHead({.status = 200, .body = {.kind = BodyLength::Kind::kUnsized}});
    request.exchange->SendData(std::string(60'000, 'a'));
  };
  (void)server.Say(Settings(Setting(4, 0x7fffffff)) + WindowUpdate(0, 0x7fff0000 - 65535));
  size_t unsent = 0;
  uint32_t stream = 1;
  std::string output;
  // The data waits in the streams; answers without data go on until the bound.
  for (; !server.progress.stop_reading && stream < 200'000; stream += 2) {
    if (stream == 21) {
      server.application.on_end = [](TestRequest& request) {
        ResponseHead head{.status = 200};
        head.fields.Add("x", std::string(1000, 'a'));
        request.exchange->SendHead(head);
        request.exchange->SendEnd({});
      };
    }
    output.clear();
    const std::string bytes = Headers(stream, Get());
    server.progress = server.session.OnBytes(bytes, output, kNow);
    unsent += output.size();
    server.session.OnUnsent(unsent, kNow);
    EXPECT_TRUE(stream > 19 || unsent < 250'000) << "DATA stops at its own bound";
  }
  EXPECT_TRUE(server.progress.stop_reading);
  EXPECT_GT(unsent, 300'000u);
  EXPECT_LT(unsent, 310'000u);
  EXPECT_EQ(server.counters.output_stops.value(), 1u);
  server.woken = false;
  server.session.OnUnsent(200'000, kNow);
  EXPECT_FALSE(server.woken);
  server.session.OnUnsent(100'000, kNow);
  EXPECT_TRUE(server.woken);
  output.clear();
  server.progress = server.session.OnBytes({}, output, kNow);
  EXPECT_FALSE(server.progress.stop_reading);
  EXPECT_FALSE(output.empty()) << "the data goes on";
}

TEST(Flood, ZeroWindowsHoldOneWindowForEachStream) {
  RawServer server;
  server.application.on_end = [](TestRequest& request) {
    request.exchange->SendHead({.status = 200, .body = {.kind = BodyLength::Kind::kUnsized}});
    while (request.exchange->unsent_bytes() < kWindowBytes)
      request.exchange->SendData(std::string(10'000, 'a'));
  };
  (void)server.Say(Settings(Setting(4, 0)));
  for (uint32_t stream = 1; stream < 200; stream += 2) (void)server.Say(Headers(stream, Get()));
  EXPECT_EQ(server.application.open(), 100u);
  for (const auto& request : server.application.requests)
    EXPECT_LT(request->exchange->unsent_bytes(), kWindowBytes + 10'000);
  EXPECT_EQ(server.log.data.size(), 0u);
  (void)server.Say(Ping());
  EXPECT_FALSE(server.closed);
}

// ---- FloodGuard

TEST(FloodGuard, RefillsOneEventInEachInterval) {
  FloodGuard guard;
  base::Instant now = kNow;
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(guard.Take(Kind::kSettings, now));
  EXPECT_FALSE(guard.Take(Kind::kSettings, now));
  now += 1s - 1ns;
  EXPECT_FALSE(guard.Take(Kind::kSettings, now));
  now += 1ns;
  EXPECT_TRUE(guard.Take(Kind::kSettings, now));
  EXPECT_FALSE(guard.Take(Kind::kSettings, now));
  EXPECT_TRUE(guard.Take(Kind::kPings, now)) << "each kind has its own";
}

TEST(FloodGuard, EarnsAtMostItsBurst) {
  FloodGuard guard;
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(guard.Take(Kind::kSettings, kNow));
  guard.Earn(Kind::kSettings, 3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(guard.Take(Kind::kSettings, kNow));
  EXPECT_FALSE(guard.Take(Kind::kSettings, kNow));
  guard.Earn(Kind::kSettings, 1'000'000);
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(guard.Take(Kind::kSettings, kNow));
  EXPECT_FALSE(guard.Take(Kind::kSettings, kNow));
}

TEST(Flood, AClockThatGoesBackDoesNoHarm) {
  RawServer server;
  (void)server.Say(Ping(), kNow + 1h);
  for (int i = 0; i < 199; ++i) (void)server.Say(Ping(), kNow);
  EXPECT_FALSE(server.closed);
  (void)server.Say(Ping(), kNow);
  EXPECT_TRUE(server.closed);
}

}  // namespace flood_test
}  // namespace headgate::http::http2
