#include "headgate/wire/permit_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::wire {
namespace permit_id_test {

TEST(PermitId, TheHashIsTheFirstHalfOfSha256) {
  // FIPS 180-2, appendix B.1: SHA-256 of "abc" is ba7816bf 8f01cfea 414140de 5dae2223 b00361a3 …
  EXPECT_EQ(HashOfPermitId("abc"),
            (base::Hash128{.low = 0x414140de5dae2223, .high = 0xba7816bf8f01cfea}));
}

TEST(PermitId, AnIdOfTheServerHas128BitsAndIsNoOther) {
  const std::string first = MakePermitId();
  const std::string second = MakePermitId();
  EXPECT_THAT(first, ::testing::MatchesRegex("[0-9a-f]{32}"));
  EXPECT_THAT(second, ::testing::MatchesRegex("[0-9a-f]{32}"));
  EXPECT_NE(first, second);
}

}  // namespace permit_id_test
}  // namespace headgate::wire
