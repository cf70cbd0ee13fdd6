// The rest of a request that comes after its answer: read and dropped within bounds, so that
// clients that send everything first get the answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "headgate/http/http2/test_raw_server.h"

namespace headgate::http::http2 {
namespace lingering_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Start = RawServer::Start;

constexpr size_t kFrameBytes = 16'384;

// Answers every request at its head.
struct Refuser : RawServer {
  explicit Refuser(ServerOptions of_server = {}) : RawServer(Start::kReady, of_server) {
    application.on_request = [](TestRequest& request) {
      request.exchange->SendHead({.status = 429});
      request.exchange->SendEnd({});
    };
  }
};

// Sends a body as a client does that looks at nothing but its windows (RFC 9113, 6.9).
class Upload {
 public:
  Upload(RawServer& server, uint32_t stream) : server_(server), stream_(stream) {}

  // Returns the frames that came back, without those for windows.
  std::vector<std::string> Send(size_t bytes, int flags = 0, base::Instant now = kNow) {
    std::vector<std::string> lines;
    do {
      const size_t size = std::min(bytes, kFrameBytes);
      bytes -= size;
      window_ -= static_cast<int64_t>(size);
      connection_window_ -= static_cast<int64_t>(size);
      EXPECT_GE(std::min(window_, connection_window_), 0) << "the client has to stop";
      const std::string frame = Data(stream_, std::string(size, 'a'), bytes == 0 ? flags : 0);
      for (std::string& line : server_.Say(frame, now)) {
        if (!TakesWindow(line)) lines.push_back(std::move(line));
      }
    } while (bytes > 0 && lines.empty());
    return lines;
  }

 private:
  bool TakesWindow(const std::string& line) {
    const std::string mine = "WINDOW " + std::to_string(stream_) + " +";
    if (line.starts_with(mine)) {
      window_ += std::stoll(line.substr(mine.size()));
    } else if (line.starts_with("WINDOW 0 +")) {
      connection_window_ += std::stoll(line.substr(10));
    } else {
      return false;
    }
    return true;
  }

  RawServer& server_;
  const uint32_t stream_;
  int64_t window_ = int64_t{64} << 10;
  int64_t connection_window_ = int64_t{1} << 20;
};

TEST(Lingering, ABodyOfAMebibyteMayEndAfterTheAnswer) {
  Refuser server;
  EXPECT_THAT(server.Say(Headers(1, Post(), 0)), ElementsAre("HEADERS 1 end :status=429"));
  EXPECT_TRUE(server.application.last().aborted) << "nobody waits for the rest";
  EXPECT_EQ(server.application.open(), 0u);
  EXPECT_THAT(Upload(server, 1).Send(size_t{1} << 20, kEndStream), IsEmpty());
  EXPECT_EQ(server.application.last().body, "");
  EXPECT_FALSE(server.progress.streaming) << "the stream has ended";
  EXPECT_EQ(server.progress.call_at, std::nullopt);
  EXPECT_THAT(server.Say(Ping()), ElementsAre("PING ack"));
}

TEST(Lingering, AByteMoreIsReset) {
  Refuser server;
  (void)server.Say(Headers(1, Post(), 0));
  Upload upload(server, 1);
  EXPECT_THAT(upload.Send(size_t{1} << 20), IsEmpty());
  EXPECT_THAT(upload.Send(1), ElementsAre("RST 1 NO_ERROR"));
  EXPECT_FALSE(server.progress.streaming);
  EXPECT_EQ(server.progress.call_at, std::nullopt);
  EXPECT_THAT(server.Say(Data(1, "more") + Data(1, "", kEndStream) + Ping()),
              ElementsAre("PING ack"))
      << "the client may not know yet";
}

TEST(Lingering, OnlyDataAfterTheAnswerCounts) {
  RawServer server(Start::kReady, {.linger_bytes_max = 1'000});
  (void)server.Say(Headers(1, Post(), 0));
  Upload upload(server, 1);
  EXPECT_THAT(upload.Send(100'000), IsEmpty());
  TestRequest& request = server.application.last();
  request.exchange->SendHead({.status = 413});
  request.exchange->SendEnd({});
  EXPECT_THAT(server.Say(""), ElementsAre("HEADERS 1 end :status=413"));
  EXPECT_EQ(request.body.size(), 100'000u);
  EXPECT_THAT(upload.Send(1'000), IsEmpty());
  EXPECT_THAT(upload.Send(1), ElementsAre("RST 1 NO_ERROR"));
}

TEST(Lingering, ItEndsAfterTwoSecondsThoughNothingArrives) {
  Refuser server;
  (void)server.Say(Headers(1, Post(), 0));
  EXPECT_EQ(server.progress.call_at, kNow + 2s);
  EXPECT_TRUE(server.progress.streaming);
  EXPECT_THAT(server.Say("", kNow + 2s - 1ns), IsEmpty());
  EXPECT_EQ(server.progress.call_at, kNow + 2s);
  EXPECT_THAT(server.Say("", kNow + 2s), ElementsAre("RST 1 NO_ERROR"));
  EXPECT_EQ(server.progress.call_at, std::nullopt);
  EXPECT_FALSE(server.progress.streaming) << "the connection is idle";
}

TEST(Lingering, SlowDataDoesNotProlongIt) {
  Refuser server;
  (void)server.Say(Headers(1, Post(), 0));
  EXPECT_THAT(server.Say(Data(1, "a"), kNow + 1999ms), IsEmpty());
  EXPECT_THAT(server.Say(Data(1, "a"), kNow + 2s), ElementsAre("RST 1 NO_ERROR"));
}

TEST(Lingering, AnEndInTheLastMomentIsAnEnd) {
  Refuser server;
  (void)server.Say(Headers(1, Post(), 0));
  EXPECT_THAT(server.Say(Data(1, "a", kEndStream), kNow + 2s), IsEmpty());
}

TEST(Lingering, EachStreamHasItsOwnTime) {
  Refuser server;
  for (const uint32_t stream : {1u, 3u, 5u, 7u})
    (void)server.Say(Headers(stream, Post(), 0), kNow + stream * 100ms);
  EXPECT_EQ(server.progress.call_at, kNow + 2100ms);
  EXPECT_THAT(server.Say(Data(3, "", kEndStream) + Reset(1, 8), kNow + 1s), IsEmpty());
  EXPECT_EQ(server.progress.call_at, kNow + 2500ms) << "those that have ended are forgotten";
  EXPECT_THAT(server.Say("", kNow + 2500ms), ElementsAre("RST 5 NO_ERROR"));
  EXPECT_EQ(server.progress.call_at, kNow + 2700ms);
  EXPECT_THAT(server.Say("", kNow + 1h), ElementsAre("RST 7 NO_ERROR"));
}

TEST(Lingering, TheWindowOfUnconsumedDataOpensAgain) {
  RawServer server;
  server.application.consumes = false;
  (void)server.Say(Headers(1, Post(), 0));
  for (int i = 0; i < 4; ++i) (void)server.Say(Data(1, std::string(kFrameBytes, 'a')));
  EXPECT_EQ(server.session.BufferedBytes(), 65'536u);
  server.application.last().exchange->SendHead({.status = 429});
  server.application.last().exchange->SendEnd({});
  EXPECT_THAT(server.Say(""), ElementsAre("HEADERS 1 end :status=429", "WINDOW 1 +65536"));
  EXPECT_EQ(server.session.BufferedBytes(), 0u);
}

TEST(Lingering, ItHoldsNoMemoryOfTheAnswer) {
  RawServer server;
  (void)server.Say(Headers(1, Post(), 0));
  ServerExchange& exchange = *server.application.last().exchange;
  exchange.SendHead({.status = 401, .body = {.kind = BodyLength::Kind::kUnsized}});
  exchange.SendData(std::string(60'000, 'a'));
  exchange.SendEnd({});
  EXPECT_GE(server.session.BufferedBytes(), 60'000u);
  EXPECT_EQ(server.Say("").back(), "DATA 1 10848 end");
  EXPECT_TRUE(server.progress.streaming);
  EXPECT_EQ(server.session.BufferedBytes(), 0u);
}

TEST(Lingering, TheConnectionHasWindowsForOthers) {
  Refuser server;
  // More than the connection's window in all, and no stream has ended.
  for (uint32_t stream = 1; stream < 80; stream += 2) {
    (void)server.Say(Headers(stream, Post(), 0));
    EXPECT_THAT(Upload(server, stream).Send(60'000), IsEmpty());
  }
  server.application.on_request = nullptr;
  (void)server.Say(Headers(81, Post(), 0));
  EXPECT_THAT(Upload(server, 81).Send(200'000, kEndStream), IsEmpty());
  EXPECT_EQ(server.application.last().body.size(), 200'000u);
  EXPECT_TRUE(server.application.last().ended);
}

TEST(Lingering, ItsStreamsCountAsOpen) {
  for (const bool in_time : {false, true}) {
    Refuser server({.streams_max = 2});
    (void)server.Say(Headers(1, Post(), 0) + Headers(3, Post(), 0));
    if (in_time) {
      EXPECT_THAT(server.Say("", kNow + 2s), ElementsAre("RST 1 NO_ERROR", "RST 3 NO_ERROR"));
      EXPECT_THAT(server.Say(Headers(5, Get()), kNow + 2s),
                  ElementsAre("HEADERS 5 end :status=429"));
    } else {
      EXPECT_THAT(server.Say(Headers(5, Get())), ElementsAre("GOAWAY 3 PROTOCOL_ERROR"))
          << "RFC 9113, 5.1.2";
    }
  }
}

TEST(Lingering, ARequestThatIsAnsweredHereMayEndToo) {
  RawServer server;
  EXPECT_THAT(server.Say(Headers(1, Post({{"expect", "x"}}), 0)),
              ElementsAre("HEADERS 1 end :status=417 content-length=0"));
  Upload upload(server, 1);
  EXPECT_THAT(upload.Send(size_t{1} << 20), IsEmpty());
  EXPECT_THAT(upload.Send(1), ElementsAre("RST 1 NO_ERROR"));
}

// ---- Floods

TEST(Lingering, EndsBeforeTheStatedLengthAreNotCountedAsAFlood) {
  // curl ends an upload that is refused where it stands (RFC 9113, 8.1.1: malformed).
  Refuser server;
  for (uint32_t stream = 1; stream < 2'000; stream += 2) {
    (void)server.Say(Headers(stream, Post({{"content-length", "1000"}}), 0));
    EXPECT_THAT(server.Say(Data(stream, "a", kEndStream)),
                ElementsAre("RST " + std::to_string(stream) + " PROTOCOL_ERROR"));
  }
  EXPECT_FALSE(server.closed);
}

TEST(Lingering, ResetsOfAnsweredRequestsAreNotCountedAsAFlood) {
  Refuser server;
  for (uint32_t stream = 1; stream < 10'000; stream += 2) {
    (void)server.Say(Headers(stream, Post(), 0));
    EXPECT_THAT(server.Say(Reset(stream, 8)), IsEmpty());
  }
  EXPECT_FALSE(server.closed);
}

TEST(Lingering, EmptyDataIsAFloodAsBefore) {
  Refuser server;
  (void)server.Say(Headers(1, Post(), 0));
  for (int i = 0; i < 20; ++i) (void)server.Say(Data(1, ""));
  EXPECT_FALSE(server.closed);
  EXPECT_THAT(server.Say(Data(1, "")), ElementsAre("GOAWAY 1 ENHANCE_YOUR_CALM"));
  EXPECT_TRUE(server.closed);
}

// ---- Shutdown

TEST(Lingering, ADrainWaitsForTheEndOfTheRequest) {
  for (const bool ends : {true, false}) {
    Refuser server;
    (void)server.Say(Headers(1, Post(), 0));
    server.session.OnDrain();
    (void)server.Say("");
    EXPECT_THAT(server.Say(Ping(kAck)), ElementsAre("GOAWAY 1 NO_ERROR"));
    EXPECT_FALSE(server.closed);
    EXPECT_EQ(server.progress.call_at, kNow + 2s);
    if (ends) {
      EXPECT_THAT(Upload(server, 1).Send(100'000, kEndStream), IsEmpty());
    } else {
      EXPECT_THAT(server.Say("", kNow + 2s), ElementsAre("RST 1 NO_ERROR"));
    }
    EXPECT_TRUE(server.closed);
    EXPECT_FALSE(server.progress.protocol_error);
  }
}

TEST(Lingering, TheClientMayCloseItsConnection) {
  Refuser server;
  (void)server.Say(Headers(1, Post(), 0));
  EXPECT_FALSE(server.session.OnInputEnd(kNow));
  EXPECT_EQ(server.session.BufferedBytes(), 0u);
}

TEST(Lingering, ItIsGivenUpWithItsConnection) {
  Refuser server;
  (void)server.Say(Headers(1, Post(), 0));
  std::string output;
  server.session.OnGivenUp(net::Session::GivenUp::kNoBuffers, output, kNow);
  EXPECT_THAT(server.log.Read(output), ElementsAre("GOAWAY 1 ENHANCE_YOUR_CALM"));
}

}  // namespace lingering_test
}  // namespace headgate::http::http2
