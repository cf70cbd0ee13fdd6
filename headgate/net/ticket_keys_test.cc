#include "headgate/net/ticket_keys.h"

#include <gtest/gtest.h>

namespace headgate::net {
namespace ticket_keys_test {

using namespace std::chrono_literals;

constexpr base::BootTime kStart{1'000'000'000};

TEST(TicketKeys, AKeyIsReplacedAfterTwoHoursAndForgottenAfterFour) {
  TicketKeys keys(kStart);
  const TicketKey first = keys.Current(kStart);
  EXPECT_EQ(keys.Current(kStart + 2h - 1ns), first);
  EXPECT_EQ(keys.Find(first.name.data(), kStart + 2h - 1ns), first);
  const TicketKey second = keys.Current(kStart + 2h);
  EXPECT_NE(second.name, first.name);
  EXPECT_NE(second.cipher, first.cipher);
  EXPECT_NE(second.mac, first.mac);
  EXPECT_EQ(keys.Find(first.name.data(), kStart + 4h - 1ns), first) << "old tickets stay valid";
  EXPECT_EQ(keys.Find(second.name.data(), kStart + 4h - 1ns), second);
  EXPECT_EQ(keys.Find(first.name.data(), kStart + 4h), std::nullopt);
  EXPECT_EQ(keys.Find(second.name.data(), kStart + 4h), second);
}

TEST(TicketKeys, AKeyThatNobodyUsedForLongIsForgotten) {
  TicketKeys keys(kStart);
  const TicketKey first = keys.Current(kStart);
  EXPECT_EQ(keys.Find(first.name.data(), kStart + 4h), std::nullopt);
  EXPECT_NE(keys.Current(kStart + 4h), first);
}

TEST(TicketKeys, UnknownNamesHaveNoKey) {
  TicketKeys keys(kStart);
  const TicketKey other = TicketKeys(kStart).Current(kStart);
  EXPECT_EQ(keys.Find(other.name.data(), kStart), std::nullopt);
}

}  // namespace ticket_keys_test
}  // namespace headgate::net
