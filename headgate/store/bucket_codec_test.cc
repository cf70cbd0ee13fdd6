#include "headgate/store/bucket_codec.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "headgate/base/text.h"

namespace headgate::store {
namespace bucket_codec_test {

using algorithm::Algorithm;
using algorithm::BucketState;
using algorithm::Limit;
using algorithm::LimitSpec;
using base::Instant;
using namespace std::chrono_literals;

LimitSpec Blocking(LimitSpec spec, size_t lengths) {
  for (uint32_t i = 0; i < lengths; ++i)
    spec.block.Add(i + 1 < lengths ? algorithm::BlockLengths::Seconds(i + 1)
                                   : algorithm::BlockLengths::kLongest);
  return spec;
}

std::vector<LimitSpec> SomeLimits() {
  return {
      {.algorithm = Algorithm::kTokenBucket, .requests = 60, .period = 60s},
      {.algorithm = Algorithm::kTokenBucket, .requests = 60, .period = 60s, .burst = 60},
      {.algorithm = Algorithm::kLeakyBucket, .requests = 4'294'967'295, .period = 1h, .burst = 1},
      {.algorithm = Algorithm::kLeakyBucketQueue, .requests = 7, .period = 60s, .burst = 0},
      {.algorithm = Algorithm::kFixedWindow, .requests = 10, .period = 1s, .count_denied = true},
      {.algorithm = Algorithm::kFixedWindow,
       .requests = 10,
       .period = 0s,
       .align = algorithm::Align::kCalendarYear},
      {.algorithm = Algorithm::kFixedWindow,
       .requests = 10,
       .period = 0s,
       .align = algorithm::Align::kCalendarWeek,
       .count_denied = true},
      {.algorithm = Algorithm::kFixedWindow,
       .requests = 10,
       .period = 1s,
       .align = algorithm::Align::kFirstHit},
      {.algorithm = Algorithm::kFixedWindow,
       .requests = 10,
       .period = 24h,
       .align = algorithm::Align::kCalendarDay,
       .zone = *base::TimeZone::Load("Europe/Berlin")},
      Blocking({.algorithm = Algorithm::kFixedWindow,
                .requests = 10,
                .period = 24h,
                .align = algorithm::Align::kCalendarDay,
                .zone = *base::TimeZone::Load("Europe/Paris")},
               2),
      {.algorithm = Algorithm::kSlidingWindowCounter, .requests = 10, .period = 1s},
      {.algorithm = Algorithm::kSlidingWindowLog,
       .requests = 100'000,
       .period = std::chrono::nanoseconds(1LL << 60)},
      Blocking({.requests = 60, .period = 60s}, 1),
      Blocking({.requests = 60, .period = 60s, .burst = 7}, algorithm::BlockLengths::kMost),
      Blocking({.algorithm = Algorithm::kSlidingWindowLog, .requests = 9, .period = 60s}, 3)};
}

BucketState SomeState(const LimitSpec& spec) {
  return {.edge = spec.algorithm == Algorithm::kSlidingWindowLog ? 0u : 1'790'000'000'123'456'789u,
          .seen = Instant::FromNanos(1'790'000'000'000'000'001),
          .count = spec.algorithm == Algorithm::kSlidingWindowCounter ? 0u : 3u};
}

bool IsLog(const LimitSpec& spec) { return spec.algorithm == Algorithm::kSlidingWindowLog; }

StoredBucket SomeBucket(const LimitSpec& spec) {
  StoredBucket bucket{.limit = *Limit::Make(spec), .state = SomeState(spec)};
  if (!spec.block.empty()) {
    const auto level = static_cast<uint8_t>(spec.block.size() - 1);
    bucket.state.block = {
        .until = bucket.state.seen + spec.block.at(level), .level = level, .used = level > 0};
  }
  if (IsLog(spec)) {
    bucket.hits.Append({Instant::FromNanos(17), 1});
    bucket.hits.Append({Instant::FromNanos(18), 2});
  }
  return bucket;
}

std::string BytesOf(const StoredBucket& bucket) {
  std::string bytes;
  AppendBucket(bucket, bytes);
  return bytes;
}

TEST(BucketCodec, AWrittenBucketIsReadBack) {
  for (size_t i = 0; i < 2 * SomeLimits().size(); ++i) {
    const LimitSpec spec = SomeLimits()[i / 2];
    StoredBucket bucket = SomeBucket(spec);
    if (i % 2 != 0) bucket.remembered_until = {bucket.state.seen + 1ns, i % 4 == 1};
    if (algorithm::KeepsLeases(spec.algorithm)) {
      bucket.leases = {
          {.id = {.node = 1, .number = 2}, .granted = 3, .reported = 4, .expires_at = Instant{5}},
          {.id = {.node = ~uint64_t{0}, .number = 0},
           .granted = ~uint32_t{0},
           .reported = 0,
           .expires_at = base::kInstantMax}};
    }
    const auto found = ParseBucket(BytesOf(bucket));
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->limit.spec(), spec);
    EXPECT_EQ(found->state, bucket.state);
    EXPECT_EQ(found->remembered_until, bucket.remembered_until);
    EXPECT_EQ(found->leases, bucket.leases);
    EXPECT_EQ(found->hits.size(), bucket.hits.size());
    EXPECT_EQ(BytesOf(*found), BytesOf(bucket));
  }
}

// The example of docs/reference/redis-state.md.
TEST(BucketCodec, IsAsTheDocumentSays) {
  const StoredBucket bucket{.limit = *Limit::Make({.requests = 60, .period = 60s}),
                            .state = {.edge = 1'790'000'001'000'000'000u,
                                      .seen = Instant::FromNanos(1'790'000'000'000'000'000),
                                      .count = 0}};
  std::string hex;
  for (const char c : BytesOf(bucket)) base::AppendHex(static_cast<uint8_t>(c), hex);
  EXPECT_EQ(hex,
            "01003c80b09dc2df01"
            "18d75b845f8dca00"
            "00000000"
            "18d75b8423f30000");
}

TEST(BucketCodec, NoLimitBeginsLikeAnother) {
  std::vector<std::string> prefixes;
  for (const LimitSpec& spec : SomeLimits()) AppendLimit(spec, prefixes.emplace_back());
  for (const std::string& a : prefixes) {
    for (const std::string& b : prefixes) EXPECT_EQ(a.starts_with(b), &a == &b);
  }
}

TEST(BucketCodec, ACommonBucketFitsIntoOneAllocationOfTheServer) {
  const StoredBucket bucket{
      .limit = *Limit::Make({.requests = 10'000, .period = 24h, .burst = 500}),
      .remembered_until = {Instant::FromNanos(1)}};
  EXPECT_LE(BytesOf(bucket).size(), 44u);
}

TEST(BucketCodec, LeasesAreThere32BytesEachAndOnlyInBucketsThatKeepThem) {
  for (const LimitSpec& spec : SomeLimits()) {
    const std::string bytes = BytesOf(SomeBucket(spec));
    EXPECT_EQ(ParseBucket(bytes + std::string(32, '\1')).has_value(),
              algorithm::KeepsLeases(spec.algorithm));
    EXPECT_FALSE(ParseBucket(bytes + std::string(31, '\1')).has_value());
    EXPECT_FALSE(ParseBucket(bytes + std::string(32, '\xff')).has_value())
        << "expires beyond all time";
  }
}

TEST(BucketCodec, HitsOutOfOrderAreNoBucket) {
  StoredBucket bucket{
      .limit = *Limit::Make(
          {.algorithm = algorithm::Algorithm::kSlidingWindowLog, .requests = 5, .period = 10s})};
  bucket.state.count = 2;
  bucket.state.seen = Instant::FromNanos(7);
  bucket.hits.Append({Instant::FromNanos(4), 1});
  StoredBucket ordered = bucket;
  ordered.hits.Append({Instant::FromNanos(4), 1});
  EXPECT_TRUE(ParseBucket(BytesOf(ordered)).has_value());
  bucket.hits.Append({Instant::FromNanos(3), 1});
  EXPECT_FALSE(ParseBucket(BytesOf(bucket)).has_value());
}

TEST(BucketCodec, CutOrCorruptBytesAreNoBucket) {
  for (const LimitSpec& spec : SomeLimits()) {
    const std::string bytes = BytesOf(SomeBucket(spec));
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(ParseBucket(std::string_view(bytes).substr(0, size)).has_value()) << size;
    }
    // Each changed byte must lead to a valid bucket or to a refusal.
    for (size_t i = 0; i < bytes.size(); ++i) {
      for (const int bend : {1, 0x40, 0x80, 0xff}) {
        std::string bent = bytes;
        bent[i] = static_cast<char>(bent[i] ^ bend);
        ParseBucket(bent);
      }
    }
  }
  EXPECT_FALSE(ParseBucket("").has_value());
  EXPECT_FALSE(ParseBucket(fmt::format("\2{:040}", 0)).has_value());
}

}  // namespace bucket_codec_test
}  // namespace headgate::store
