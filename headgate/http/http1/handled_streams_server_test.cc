// Answers in parts over real sockets: a slow reader holds its source back, and a disconnected
// client's source is destroyed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "headgate/http/handler_application.h"
#include "headgate/http/http1/server_session.h"
#include "headgate/http/http1/test_bodies.h"
#include "headgate/net/server_rig.h"

namespace headgate::http::http1 {
namespace handled_streams_server_test {

using namespace std::chrono_literals;

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
constexpr uint64_t kLarge = uint64_t{64} << 20;

struct StreamingProtocol {
  net::SessionChoice Choose(std::span<const char>, const net::Peer& peer, net::Room) {
    return {.made = true,
            .session = std::make_unique<ServerSession>(application, http1_options, peer)};
  }

  StreamingHandler handler;
  HandlerOptions options;
  ServerOptions http1_options{.cancels_abandoned = false};
  HandlerApplication application{handler, options};
};

struct StreamingServer : net::ServerRig<StreamingProtocol> {
  explicit StreamingServer(const net::ServerOptions& net_options = {}) : ServerRig(net_options) {
    server->Start();
  }
  net::BlockingClient Ask() const {
    net::BlockingClient client = Connect();
    EXPECT_TRUE(client.Send(kGet).ok());
    return client;
  }
  // The source lives on the loop's thread.
  uint64_t given() {
    uint64_t bytes = 0;
    OnLoop([&] { bytes = handler.source.given; });
    return bytes;
  }
  bool alive() {
    bool seen = false;
    OnLoop([&] { seen = handler.source.alive; });
    return seen;
  }
  // Polls until the source gives nothing more to a client that does not read; returns how much it
  // gave.
  uint64_t GivenInTheEnd() {
    uint64_t before = 0;
    for (int quiet = 0; quiet < 50; ++quiet) {
      const uint64_t now = given();
      if (now != before) quiet = 0;
      before = now;
    }
    return before;
  }
};

// Reads up to and including `bytes` bytes of the body.
std::string ReadBody(net::BlockingClient& client, uint64_t bytes) {
  std::string all;
  size_t body_at = std::string::npos;
  while (body_at == std::string::npos || all.size() - body_at < bytes) {
    const auto some = client.ReadSome();
    if (!some.ok() || some->empty()) break;
    all += *some;
    if (body_at == std::string::npos && all.find("\r\n\r\n") != std::string::npos)
      body_at = all.find("\r\n\r\n") + 4;
  }
  return body_at == std::string::npos ? "" : all.substr(body_at);
}

TEST(StreamingServer, ASlowReaderHoldsTheSourceBackAndThenGetsEverything) {
  StreamingServer server;
  server.handler.source.size = kLarge;
  net::BlockingClient client = server.Ask();
  while (server.given() == 0) std::this_thread::yield();
  // At most the buffers of both sockets plus the output of one call.
  EXPECT_LT(server.GivenInTheEnd(), kLarge / 2);
  EXPECT_LT(server.server->counters().buffer_bytes, uint64_t{1} << 20);
  const std::string body = ReadBody(client, kLarge);
  EXPECT_EQ(body.size(), kLarge);
  EXPECT_TRUE(body.ends_with(SourceControl::Content(kLarge - 1000, kLarge)));
  EXPECT_FALSE(server.alive());
  ASSERT_TRUE(
      client.Send("GET /small HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok());
  EXPECT_TRUE(client.ReadToEnd(1000)->ends_with("small"));
}

TEST(StreamingServer, AClientThatGoesInTheMiddleTakesTheSourceAlong) {
  StreamingServer server;
  server.handler.source.size = kLarge;
  {
    net::BlockingClient client = server.Ask();
    while (server.given() == 0) std::this_thread::yield();
    EXPECT_TRUE(server.alive());
  }
  while (server.alive()) std::this_thread::yield();
  EXPECT_LT(server.given(), kLarge);
  while (server.server->counters().connections_open > 0) std::this_thread::yield();
}

TEST(StreamingServer, AClientOfAQuietEndlessStreamThatGoesIsSeen) {
  StreamingServer server;
  server.handler.source = {.size = UINT64_MAX, .ready = 3, .states_size = false, .endless = true};
  {
    net::BlockingClient client = server.Ask();
    EXPECT_THAT(ReadBody(client, 8), ::testing::StartsWith("3\r\nabc\r\n"));
    EXPECT_TRUE(server.alive());
  }
  while (server.alive()) std::this_thread::yield();
}

TEST(StreamingServer, AQuietEndlessStreamOutlivesEveryTimeoutAndEndsWithTheServer) {
  StreamingServer server({.request_timeout = 10s, .idle_timeout = 60s});
  server.handler.source = {.size = UINT64_MAX, .ready = 3, .states_size = false, .endless = true};
  net::BlockingClient client = server.Ask();
  ReadBody(client, 8);
  server.source.Advance(1h);
  server.OnLoop([&] {
    server.handler.source.ready = 5;
    server.handler.source.wake();
    return true;
  });
  EXPECT_EQ(*client.ReadSome(), "2\r\nde\r\n");
  std::thread drain([&] { EXPECT_TRUE(server.server->Drain(10s)); });
  EXPECT_EQ(*client.ReadToEnd(100), "0\r\n\r\n");
  drain.join();
}

TEST(StreamingServer, AReaderThatReadsNothingLosesItsConnectionInTime) {
  StreamingServer server({.write_timeout = 10s});
  server.handler.source.size = kLarge;
  net::BlockingClient client = server.Ask();
  while (server.given() == 0) std::this_thread::yield();
  server.GivenInTheEnd();
  while (server.server->counters().write_timeouts == 0) {
    server.source.Advance(10s);
    std::this_thread::yield();
  }
  while (server.alive()) std::this_thread::yield();
}

TEST(StreamingServer, AnAnswerMayTakeLongerThanTheRequestTimeoutWhileItGoesOn) {
  StreamingServer server({.request_timeout = 10s});
  server.handler.source.size = uint64_t{8} << 20;
  server.handler.source.on_read = [&] { server.source.Advance(1s); };
  net::BlockingClient client = server.Ask();
  EXPECT_EQ(ReadBody(client, server.handler.source.size).size(), uint64_t{8} << 20);
  EXPECT_EQ(server.server->counters().request_timeouts, 0u);
}

TEST(StreamingServer, ASourceThatStallsIsGivenUpAfterTheRequestTimeout) {
  StreamingServer server({.request_timeout = 10s});
  server.handler.source = {.size = 10, .ready = 4};
  net::BlockingClient client = server.Ask();
  EXPECT_EQ(ReadBody(client, 4), "abcd");
  server.source.Advance(11s);
  while (server.alive()) std::this_thread::yield();
  EXPECT_EQ(server.server->counters().request_timeouts, 1u);
}

}  // namespace handled_streams_server_test
}  // namespace headgate::http::http1
