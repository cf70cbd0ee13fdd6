#include "headgate/store/bucket_codec.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace headgate::store {
namespace {

using algorithm::Algorithm;
using algorithm::BucketState;
using algorithm::Limit;
using algorithm::LimitSpec;
using base::Instant;
using namespace std::chrono_literals;

std::vector<LimitSpec> SomeLimits() {
  return {
      {.algorithm = Algorithm::kTokenBucket, .requests = 60, .period = 60s},
      {.algorithm = Algorithm::kTokenBucket, .requests = 60, .period = 60s, .burst = 60},
      {.algorithm = Algorithm::kLeakyBucket, .requests = 4'294'967'295, .period = 1h, .burst = 1},
      {.algorithm = Algorithm::kLeakyBucketQueue, .requests = 7, .period = 60s, .burst = 0},
      {.algorithm = Algorithm::kFixedWindow, .requests = 10, .period = 1s, .count_denied = true},
      {.algorithm = Algorithm::kFixedWindow, .requests = 10, .period = 0s, .align = algorithm::Align::kCalendarYear},
      {.algorithm = Algorithm::kFixedWindow, .requests = 10, .period = 1s, .align = algorithm::Align::kFirstHit},
      {.algorithm = Algorithm::kSlidingWindowCounter, .requests = 10, .period = 1s},
      {.algorithm = Algorithm::kSlidingWindowLog, .requests = 100'000, .period = std::chrono::nanoseconds(1LL << 60)}};
}

BucketState SomeState(const LimitSpec& spec) {
  return {.edge = spec.algorithm == Algorithm::kSlidingWindowLog ? 0u : 1'790'000'000'123'456'789u,
          .seen = Instant::FromNanos(1'790'000'000'000'000'001),
          .count = spec.algorithm == Algorithm::kSlidingWindowCounter ? 0u : 3u};
}

TEST(ValueCodec, WhatIsWrittenIsRead) {
  const std::string leases(64, 'x');
  for (size_t i = 0; i < 2 * SomeLimits().size(); ++i) {
    const LimitSpec spec = SomeLimits()[i / 2];
    const Instant remembered_until = i % 2 == 0 ? Instant{0} : SomeState(spec).seen + 1ns;
    const Limit limit = *Limit::Make(spec);
    const bool log = spec.algorithm == Algorithm::kSlidingWindowLog;
    HitList hits;
    if (log) hits.Append({Instant::FromNanos(17), 3});
    std::string bytes;
    AppendValue(limit, SomeState(spec), hits, remembered_until, log ? "" : leases, bytes);
    const auto found = ParseValue(bytes, log ? ValueShape::kList : ValueShape::kString);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->limit.spec(), spec);
    EXPECT_EQ(found->state, SomeState(spec));
    EXPECT_EQ(found->remembered_until, remembered_until);
    EXPECT_EQ(found->leases, log ? "" : leases);
    EXPECT_EQ(found->hits.size(), log ? 1u : 0u);
    EXPECT_FALSE(ParseValue(bytes, log ? ValueShape::kString : ValueShape::kList).has_value());
  }
}

// The example of docs/reference/redis-state.md.
TEST(ValueCodec, IsAsTheDocumentSays) {
  const Limit limit = *Limit::Make({.algorithm = Algorithm::kTokenBucket, .requests = 60, .period = 60s});
  const BucketState state{
      .edge = 1'790'000'001'000'000'000u, .seen = Instant::FromNanos(1'790'000'000'000'000'000), .count = 0};
  std::string bytes, hex;
  AppendValue(limit, state, {}, {}, "", bytes);
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  EXPECT_EQ(hex,
            "01003c80b09dc2df01"
            "18d75b845f8dca00"
            "00000000"
            "18d75b8423f30000");
}

TEST(ValueCodec, NoPrefixBeginsLikeAnother) {
  std::vector<std::string> prefixes;
  for (const LimitSpec& spec : SomeLimits()) AppendPrefix(spec, prefixes.emplace_back());
  for (const std::string& a : prefixes) {
    for (const std::string& b : prefixes) EXPECT_EQ(a.starts_with(b), &a == &b);
  }
}

TEST(ValueCodec, ACommonBucketFitsIntoOneAllocationOfTheServer) {
  const Limit limit =
      *Limit::Make({.algorithm = Algorithm::kTokenBucket, .requests = 10'000, .period = 24h, .burst = 500});
  std::string bytes;
  AppendValue(limit, {}, {}, Instant::FromNanos(1), "", bytes);
  EXPECT_LE(bytes.size(), 44u);
}

TEST(ValueCodec, WhatIsCutOrBentIsNoBucket) {
  for (const LimitSpec& spec : SomeLimits()) {
    const bool log = spec.algorithm == Algorithm::kSlidingWindowLog;
    const ValueShape shape = log ? ValueShape::kList : ValueShape::kString;
    HitList hits;
    if (log) hits.Append({Instant::FromNanos(17), 3});
    std::string bytes;
    AppendValue(*Limit::Make(spec), SomeState(spec), hits, {}, "", bytes);
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(ParseValue(std::string_view(bytes).substr(0, size), shape).has_value()) << size;
    }
    // Whatever a byte becomes, it is read or refused.
    for (size_t i = 0; i < bytes.size(); ++i) {
      for (const int bend : {1, 0x40, 0x80, 0xff}) {
        std::string bent = bytes;
        bent[i] = static_cast<char>(bent[i] ^ bend);
        ParseValue(bent, shape);
      }
    }
  }
  EXPECT_FALSE(ParseValue("", ValueShape::kString).has_value());
  EXPECT_FALSE(ParseValue(fmt::format("\2{:040}", 0), ValueShape::kString).has_value());
}

}  // namespace
}  // namespace headgate::store
