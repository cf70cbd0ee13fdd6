#include "headgate/net/socket_address.h"

#include <gtest/gtest.h>

namespace headgate::net {
namespace socket_address_test {

TEST(SocketAddress, HasATextThatCanBeConnectedTo) {
  EXPECT_EQ(Ipv4Socket("192.0.2.1", 80).ToString(), "192.0.2.1:80");
  EXPECT_EQ(Ipv6Socket("2001:db8::1", 65535).ToString(), "[2001:db8::1]:65535");
}

}  // namespace socket_address_test
}  // namespace headgate::net
