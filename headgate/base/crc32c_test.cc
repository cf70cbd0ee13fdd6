#include "headgate/base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace headgate::base {
namespace crc32c_test {

// RFC 3720, appendix B.4, and the usual check value.
TEST(Crc32c, IsAsInTheRfc) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62A8AB43u);
}

TEST(Crc32c, GoesOnFromTheBytesBefore) {
  const std::string bytes = "123456789";
  for (size_t at = 0; at <= bytes.size(); ++at)
    EXPECT_EQ(Crc32c(bytes.substr(at), Crc32c(bytes.substr(0, at))), 0xE3069283u) << at;
}

}  // namespace crc32c_test
}  // namespace headgate::base
