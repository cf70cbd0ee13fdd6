#include "headgate/net/connection_limits.h"

#include <gtest/gtest.h>

namespace headgate::net {
namespace connection_limits_test {

AddressKey KeyAt(const char* address) { return KeyOf({.ip = base::ParseIpAddress(address)}); }

TEST(ConnectionLimits, RefusesBeyondTheTotalAndTakesPlacesBack) {
  ConnectionLimits limits(2, 0);
  ConnectionLimits::Refusal refusal{};
  const AddressKey key = KeyAt("10.0.0.1");
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
  auto ann = limits.Enter(KeyAt("10.0.0.1"), refusal);
  auto bob = limits.Enter(KeyAt("10.0.0.2"), refusal);
  EXPECT_TRUE(ann && bob);
  EXPECT_FALSE(limits.Enter(KeyAt("10.0.0.1"), refusal));
  EXPECT_EQ(refusal, ConnectionLimits::Refusal::kAddress);
  ann.reset();
  EXPECT_TRUE(limits.Enter(KeyAt("10.0.0.1"), refusal));
}

TEST(ConnectionLimits, SaysWhenTheLastPlaceIsFree) {
  ConnectionLimits limits(10, 1);
  ConnectionLimits::Refusal refusal{};
  auto slot = limits.Enter(KeyOf(Peer{}), refusal);
  EXPECT_FALSE(limits.WaitUntilEmpty(std::chrono::milliseconds(1)));
  slot.reset();
  EXPECT_TRUE(limits.WaitUntilEmpty(std::chrono::milliseconds(1)));
}

}  // namespace connection_limits_test
}  // namespace headgate::net
