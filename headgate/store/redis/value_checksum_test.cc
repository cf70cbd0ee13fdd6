#include "headgate/store/redis/value_checksum.h"

#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "headgate/store/big_endian.h"
#include "headgate/store/bucket_codec.h"

namespace headgate::store::redis {
namespace value_checksum_test {

// The example of docs/reference/redis-state.md.
const std::string kBucket =
    absl::HexStringToBytes("01003c80b09dc2df0118d75b845f8dca000000000018d75b8423f30000");

TEST(ValueChecksum, IsThatOfTheDocumentation) {
  EXPECT_EQ(ValueChecksum(kBucket), 0x1a798b14u);
  EXPECT_EQ(BucketOfValue(kBucket + absl::HexStringToBytes("000000001a798b14")), kBucket);
  EXPECT_EQ(BucketOfValue(kBucket + absl::HexStringToBytes("000000001a798b15")), std::nullopt);
  EXPECT_EQ(BucketOfValue(kBucket), kBucket) << "of an earlier version";
}

// Versions of Headgate that know no checksum see a time that has passed.
TEST(ValueChecksum, LeavesTheBucketReadableForEarlierVersions) {
  const auto bucket = ParseBucket(kBucket + absl::HexStringToBytes("000000001a798b14"));
  ASSERT_TRUE(bucket.has_value());
  EXPECT_LT(bucket->remembered_until, bucket->state.seen);
  std::string bytes;
  AppendBucket(*bucket, bytes);
  EXPECT_EQ(bytes, kBucket);
}

TEST(ValueChecksum, BytesThatAreNotABucketHaveNone) {
  for (const std::string& bytes : {std::string(), std::string("hello"), kBucket.substr(0, 20)}) {
    EXPECT_EQ(BucketOfValue(bytes), std::nullopt);
  }
}

TEST(ValueChecksum, ATimeThatIsOverIsNotRemembered) {
  std::string value = kBucket;
  Packer(value).U64(0x18d75b8423f30000);
  EXPECT_EQ(BucketOfValue(value), std::nullopt);
  value.back() = 1;
  EXPECT_EQ(BucketOfValue(value), value);
}

}  // namespace value_checksum_test
}  // namespace headgate::store::redis
