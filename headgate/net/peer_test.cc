#include "headgate/net/peer.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "headgate/net/connection_limits.h"

namespace headgate::net {
namespace peer_test {

Peer At(const char* text, uint16_t port = 0) {
  sockaddr_storage storage{};
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&storage, &v4, sizeof(v4));
  } else {
    EXPECT_EQ(inet_pton(AF_INET6, text, &v6.sin6_addr), 1) << text;
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    std::memcpy(&storage, &v6, sizeof(v6));
  }
  return PeerOf(storage);
}

Peer AtUnixSocket() {
  sockaddr_storage storage{};
  storage.ss_family = AF_UNIX;
  return PeerOf(storage);
}

TEST(AddressKey, IsOnePerIpv4AddressWhateverItsClothes) {
  EXPECT_EQ(KeyOf(At("10.0.0.1")), KeyOf(At("::ffff:10.0.0.1")));
  EXPECT_NE(KeyOf(At("10.0.0.1")), KeyOf(At("10.0.0.2")));
}

TEST(AddressKey, IsOnePerIpv6NetworkOf64Bits) {
  EXPECT_EQ(KeyOf(At("2001:db8::1")), KeyOf(At("2001:db8::ffff:1")));
  EXPECT_NE(KeyOf(At("2001:db8:0:0::1")), KeyOf(At("2001:db8:0:1::1")));
}

TEST(Peer, KnowsWhoIsOnThisMachine) {
  EXPECT_TRUE(At("127.0.0.1").loopback);
  EXPECT_TRUE(At("127.255.0.9").loopback);
  EXPECT_TRUE(At("::1").loopback);
  EXPECT_TRUE(At("::ffff:127.0.0.1").loopback);
  EXPECT_TRUE(AtUnixSocket().loopback);
  EXPECT_FALSE(At("128.0.0.1").loopback);
  EXPECT_FALSE(At("::2").loopback);
  EXPECT_FALSE(At("::ffff:10.0.0.1").loopback);
}

TEST(Peer, ALoopbackAddressBehindAProxyIsOnTheProxysMachine) {
  EXPECT_FALSE(PeerBehindProxy(*base::ParseIpAddress("127.0.0.1"), 7).loopback);
}

TEST(Peer, HasTheAddressThatPeopleWrite) {
  EXPECT_EQ(At("10.0.0.7").address, "10.0.0.7:0");
  EXPECT_EQ(At("::ffff:10.0.0.7", 80).address, "10.0.0.7:80");
  EXPECT_EQ(At("2001:db8::1", 50000).address, "[2001:db8::1]:50000");
  EXPECT_EQ(AtUnixSocket().address, "unix");
  EXPECT_EQ(PeerBehindProxy(*base::ParseIpAddress("2001:db8::1"), 443).address,
            "[2001:db8::1]:443");
}

}  // namespace peer_test
}  // namespace headgate::net
