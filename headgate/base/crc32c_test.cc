#include "headgate/base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace headgate::base {
namespace {

// RFC 3720, appendix B.4, and the usual check value.
TEST(Crc32c, IsAsInTheRfc) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62A8AB43u);
}

}  // namespace
}  // namespace headgate::base
