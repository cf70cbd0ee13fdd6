#include "headgate/store/redis/key_slot.h"

#include <gtest/gtest.h>

namespace headgate::store::redis {
namespace key_slot_test {

// The check value of CRC-16/XMODEM, and slots that the cluster's documentation names.
TEST(KeySlot, IsTheSpecifications) {
  EXPECT_EQ(Crc16("123456789"), 0x31C3);
  EXPECT_EQ(KeySlot("foo"), 12182);
  EXPECT_EQ(KeySlot("bar"), 5061);
  EXPECT_EQ(KeySlot(""), 0);
}

TEST(KeySlot, LooksAtTheFirstHashTagAlone) {
  EXPECT_EQ(KeySlot("{user1000}.following"), KeySlot("user1000"));
  EXPECT_EQ(KeySlot("foo{bar}{zap}"), KeySlot("bar"));
  EXPECT_EQ(KeySlot("foo{{bar}}zap"), KeySlot("{bar"));
  EXPECT_EQ(KeySlot("foo{}{bar}"), Crc16("foo{}{bar}") % kSlotCount) << "an empty tag is none";
  EXPECT_EQ(KeySlot("foo{bar"), Crc16("foo{bar") % kSlotCount);
}

}  // namespace key_slot_test
}  // namespace headgate::store::redis
