#include "headgate/proxy/websocket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/proxy/relay_rig.h"

namespace headgate::proxy {
namespace websocket_test {

using http::BodyLength;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The example of RFC 6455, 1.3.
constexpr std::string_view kKey = "dGhlIHNhbXBsZSBub25jZQ==";
constexpr std::string_view kAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

TEST(WebSocket, AcceptIsTheExampleOfTheRfc) { EXPECT_EQ(WebSocketAccept(kKey), kAccept); }

TEST(WebSocket, KeyHasSixteenBytesAndIsNewEachTime) {
  base::Random random(1);
  const std::string key = WebSocketKey(random);
  EXPECT_EQ(key.size(), 24u);
  EXPECT_TRUE(key.ends_with("=="));
  EXPECT_NE(WebSocketKey(random), key);
}

void Begin(RelayRig& rig, http::Version version, bool upstream_http2) {
  rig.upstream.http2 = upstream_http2;
  rig.Begin("GET", [&](http::RequestHead& head) {
    head.version = version;
    head.protocol = "websocket";
    if (version == http::Version::kHttp11) head.fields.Add("Sec-WebSocket-Key", kKey);
    head.fields.Add("Sec-WebSocket-Version", "13");
  });
}

http::ResponseHead Accepts(std::string_view accept) {
  http::ResponseHead head{.status = 101, .body = {BodyLength::Kind::kTunnel}};
  if (!accept.empty()) head.fields.Add("Sec-WebSocket-Accept", accept);
  return head;
}

TEST(WebSocket, BetweenEqualVersionsTheHandshakeIsPassedOn) {
  RelayRig rig;
  Begin(rig, http::Version::kHttp11, false);
  EXPECT_THAT(rig.upstream.got, ElementsAre(HasSubstr(std::string(kKey))));
  rig.Answer(rig.upstream).OnHead(Accepts("as the upstream says"), rig.now);
  EXPECT_THAT(rig.client.got,
              ElementsAre("head 101 tunnel Sec-WebSocket-Accept=as the upstream says"));
}

TEST(WebSocket, FromHttp1ToHttp2TheProxyAnswersTheKey) {
  RelayRig rig;
  Begin(rig, http::Version::kHttp11, true);
  EXPECT_THAT(rig.upstream.got, ElementsAre("GET /x Sec-WebSocket-Version=13"));
  rig.Answer(rig.upstream).OnHead(Accepts(""), rig.now);
  EXPECT_THAT(rig.client.got,
              ElementsAre("head 101 tunnel Sec-WebSocket-Accept=" + std::string(kAccept)));
}

TEST(WebSocket, FromHttp2ToHttp1TheProxyAsksForTheProof) {
  RelayRig rig;
  Begin(rig, http::Version::kHttp2, false);
  const std::string& asked = rig.upstream.got.front();
  const size_t at = asked.find("Sec-WebSocket-Key=");
  ASSERT_NE(at, std::string::npos);
  const std::string key = asked.substr(at + 18, 24);
  rig.Answer(rig.upstream).OnHead(Accepts(WebSocketAccept(key)), rig.now);
  EXPECT_THAT(rig.client.got, ElementsAre("head 101 tunnel"));
}

TEST(WebSocket, UpstreamWithoutTheProofGetsNoTunnel) {
  for (const std::string_view accept : {std::string_view(""), kAccept}) {
    RelayRig rig;
    Begin(rig, http::Version::kHttp2, false);
    rig.Answer(rig.upstream).OnHead(Accepts(accept), rig.now);
    EXPECT_THAT(rig.client.got.front(), StartsWith("head 502 "));
    EXPECT_EQ(rig.upstream.got.back(), "cancel");
    EXPECT_THAT(rig.upstream.left, ElementsAre(Ended::kFailed));
  }
}

}  // namespace websocket_test
}  // namespace headgate::proxy
