#include "headgate/net/connection_limits.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

namespace headgate::net {
namespace {

sockaddr_storage Address(const char* text) {
  sockaddr_storage storage{};
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    std::memcpy(&storage, &v4, sizeof(v4));
  } else {
    EXPECT_EQ(inet_pton(AF_INET6, text, &v6.sin6_addr), 1) << text;
    v6.sin6_family = AF_INET6;
    std::memcpy(&storage, &v6, sizeof(v6));
  }
  return storage;
}

sockaddr_storage UnixAddress() {
  sockaddr_storage storage{};
  storage.ss_family = AF_UNIX;
  return storage;
}

TEST(AddressKey, IsOnePerIpv4AddressWhateverItsClothes) {
  EXPECT_EQ(KeyOf(Address("10.0.0.1")), KeyOf(Address("::ffff:10.0.0.1")));
  EXPECT_NE(KeyOf(Address("10.0.0.1")), KeyOf(Address("10.0.0.2")));
}

TEST(AddressKey, IsOnePerIpv6NetworkOf64Bits) {
  EXPECT_EQ(KeyOf(Address("2001:db8::1")), KeyOf(Address("2001:db8::ffff:1")));
  EXPECT_NE(KeyOf(Address("2001:db8:0:0::1")), KeyOf(Address("2001:db8:0:1::1")));
}

TEST(AddressKey, KnowsWhoIsOnThisMachine) {
  EXPECT_TRUE(IsLoopback(Address("127.0.0.1")));
  EXPECT_TRUE(IsLoopback(Address("127.255.0.9")));
  EXPECT_TRUE(IsLoopback(Address("::1")));
  EXPECT_TRUE(IsLoopback(Address("::ffff:127.0.0.1")));
  EXPECT_TRUE(IsLoopback(UnixAddress()));
  EXPECT_FALSE(IsLoopback(Address("128.0.0.1")));
  EXPECT_FALSE(IsLoopback(Address("::2")));
  EXPECT_FALSE(IsLoopback(Address("::ffff:10.0.0.1")));
}

TEST(AddressText, IsWhatPeopleWrite) {
  EXPECT_EQ(AddressText(Address("10.0.0.7")), "10.0.0.7:0");
  EXPECT_EQ(AddressText(Address("::ffff:10.0.0.7")), "10.0.0.7:0");
  sockaddr_storage v6 = Address("2001:db8::1");
  reinterpret_cast<sockaddr_in6*>(&v6)->sin6_port = htons(50000);
  EXPECT_EQ(AddressText(v6), "[2001:db8::1]:50000");
  EXPECT_EQ(AddressText(UnixAddress()), "unix");
}

TEST(ConnectionLimits, RefusesBeyondTheTotalAndTakesPlacesBack) {
  ConnectionLimits limits(2, 0);
  ConnectionLimits::Refusal refusal{};
  const AddressKey key = KeyOf(Address("10.0.0.1"));
  auto first = limits.Enter(key, refusal);
  auto second = limits.Enter(key, refusal);
  EXPECT_TRUE(first && second);
  EXPECT_FALSE(limits.Enter(key, refusal));
  EXPECT_EQ(refusal, ConnectionLimits::Refusal::kTotal);
  first.reset();
  EXPECT_TRUE(limits.Enter(key, refusal));
}

TEST(ConnectionLimits, CountsEachAddressForItself) {
  ConnectionLimits limits(10, 1);
  ConnectionLimits::Refusal refusal{};
  auto ann = limits.Enter(KeyOf(Address("10.0.0.1")), refusal);
  auto bob = limits.Enter(KeyOf(Address("10.0.0.2")), refusal);
  EXPECT_TRUE(ann && bob);
  EXPECT_FALSE(limits.Enter(KeyOf(Address("10.0.0.1")), refusal));
  EXPECT_EQ(refusal, ConnectionLimits::Refusal::kAddress);
  ann.reset();
  EXPECT_TRUE(limits.Enter(KeyOf(Address("10.0.0.1")), refusal));
}

TEST(ConnectionLimits, SaysWhenTheLastPlaceIsFree) {
  ConnectionLimits limits(10, 1);
  ConnectionLimits::Refusal refusal{};
  auto slot = limits.Enter(KeyOf(UnixAddress()), refusal);
  EXPECT_FALSE(limits.WaitUntilEmpty(std::chrono::milliseconds(1)));
  slot.reset();
  EXPECT_TRUE(limits.WaitUntilEmpty(std::chrono::milliseconds(1)));
}

}  // namespace
}  // namespace headgate::net
