// Tunnels after an upgrade, and upgrades that do not become tunnels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "headgate/http/http1/server_dialogue.h"

namespace headgate::http::http1 {
namespace server_tunnel_test {

using ::testing::EndsWith;
using ::testing::StartsWith;

constexpr BodyLength kTunnel{.kind = BodyLength::Kind::kTunnel};
// The application acts on its own.
void Silent(Received& /*received*/) {}

constexpr std::string_view kUpgrade =
    "GET /chat HTTP/1.1\r\nHost: a.example\r\nConnection: keep-alive, Upgrade\r\n"
    "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n";

TEST(Http1Tunnel, BeginsWithTheAnswer) {
  ServerDialogue d;
  EXPECT_EQ(d.Say(std::string(kUpgrade) + "early"), "");
  Received& received = d.application.last();
  EXPECT_EQ(received.head.protocol, "websocket");
  EXPECT_EQ(received.head.fields.size(), 1u);
  EXPECT_EQ(received.head.fields.Find("Sec-WebSocket-Version"), "13");
  EXPECT_FALSE(received.ended);
  EXPECT_EQ(received.body, "") << "no byte before the answer";
  EXPECT_TRUE(d.progress.stop_reading);

  received.exchange->SendHead({.status = 101, .fields = {}, .body = kTunnel});
  EXPECT_EQ(
      d.Run(),
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  EXPECT_EQ(received.body, "early");
  EXPECT_TRUE(d.progress.streaming);
  received.exchange->SendData("down");
  EXPECT_EQ(d.Say("GET / HTTP/1.1\r\n\r\n"), "down");
  EXPECT_EQ(received.body, "earlyGET / HTTP/1.1\r\n\r\n");

  d.application.on_end = Silent;
  EXPECT_EQ(d.End(), "");
  EXPECT_TRUE(received.ended);
  EXPECT_FALSE(d.progress.close);
  received.exchange->SendData("more");
  EXPECT_EQ(d.Run(), "more");
  received.exchange->SendEnd({});
  EXPECT_EQ(d.Run(), "");
  EXPECT_TRUE(d.progress.close);
  EXPECT_FALSE(received.alive);
  EXPECT_FALSE(received.aborted);
}

TEST(Http1Tunnel, EachDirectionEndsOnItsOwn) {
  ServerDialogue d;
  d.application.on_end = Silent;
  d.Say(kUpgrade);
  Received& received = d.application.last();
  received.exchange->SendHead({.status = 101, .fields = {}, .body = kTunnel});
  received.exchange->SendData("bye");
  received.exchange->SendEnd({});
  EXPECT_THAT(d.Run(), EndsWith("bye"));
  EXPECT_TRUE(d.progress.finish_writing);
  EXPECT_FALSE(d.progress.close);
  d.Say("up");
  EXPECT_EQ(received.body, "up");
  d.End();
  EXPECT_TRUE(received.ended);
  EXPECT_TRUE(d.progress.close);
}

TEST(Http1Tunnel, HasCreditsLikeABody) {
  ServerDialogue d;
  d.application.consumes = false;
  d.application.on_end = Silent;
  d.Say(kUpgrade);
  Received& received = d.application.last();
  received.exchange->SendHead({.status = 101, .fields = {}, .body = kTunnel});
  d.Say(std::string(kWindowBytes + 5, 'x'));
  EXPECT_TRUE(d.progress.stop_reading);
  EXPECT_EQ(d.rest.size(), 5u);
  d.End();
  EXPECT_FALSE(received.ended) << "its last bytes come first";
  received.Consume(kWindowBytes);
  d.Run();
  EXPECT_EQ(received.body.size(), kWindowBytes + 5);
  EXPECT_TRUE(received.ended);
}

TEST(Http1Upgrade, ThatIsNotAcceptedIsAnOrdinaryRequest) {
  ServerDialogue d;
  d.application.on_end = Silent;
  d.Say(std::string(kUpgrade) + std::string(kGet));
  Received& received = d.application.last();
  EXPECT_FALSE(received.ended);
  received.Answer("no", 403);
  EXPECT_THAT(d.Run(), StartsWith("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"));
  EXPECT_TRUE(received.ended);
  ASSERT_EQ(d.application.requests.size(), 2u);
  EXPECT_EQ(d.application.last().head.target, "/x?y=1");
}

TEST(Http1Upgrade, ThatCannotBePassedOnIsIgnored) {
  for (const std::string fields :
       {"Connection: Upgrade\r\nUpgrade: h2c\r\n", "Connection: Upgrade\r\nUpgrade: H2\r\n",
        "Connection: Upgrade\r\nUpgrade: TLS/1.3\r\n",
        "Connection: Upgrade\r\nUpgrade: HTTP/2.0\r\n", "Upgrade: websocket\r\n",
        "Connection: Upgrade\r\nUpgrade: a, b\r\n",
        "Connection: Upgrade\r\nUpgrade: a\r\nUpgrade: b\r\n",
        "Connection: Upgrade\r\nUpgrade: a\r\nContent-Length: 1\r\n"}) {
    ServerDialogue d;
    d.Say(Get(fields) + "x");
    ASSERT_EQ(d.application.requests.size(), 1u) << fields;
    EXPECT_EQ(d.application.last().head.protocol, "") << fields;
    EXPECT_TRUE(d.application.last().ended) << fields;
    EXPECT_TRUE(d.application.last().head.fields.empty()) << fields;
  }
}

}  // namespace server_tunnel_test
}  // namespace headgate::http::http1
