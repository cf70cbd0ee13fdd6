#include "headgate/rule/limit_text.h"

#include <gtest/gtest.h>

namespace headgate::rule {
namespace limit_text_test {

using algorithm::Algorithm;
using algorithm::Align;
using std::chrono_literals::operator""s;

std::string Text(const algorithm::LimitSpec& spec) {
  return Describe(*algorithm::Limit::Make(spec));
}

TEST(Describe, SaysALimitAsPeopleReadIt) {
  EXPECT_EQ(Text({.requests = 100, .period = 60s, .burst = 20}),
            "100 per 1m, token_bucket, burst 20");
  EXPECT_EQ(
      Text({.algorithm = Algorithm::kLeakyBucketQueue, .requests = 5, .period = 1s, .burst = 0}),
      "5 per 1s, leaky_bucket, burst 0, queue");
  EXPECT_EQ(
      Text({.algorithm = Algorithm::kFixedWindow, .requests = 5, .align = Align::kCalendarMonth}),
      "5 per calendar month, fixed_window");
  EXPECT_EQ(
      Text({.algorithm = Algorithm::kFixedWindow, .requests = 5, .align = Align::kCalendarWeek}),
      "5 per calendar week, fixed_window");
  EXPECT_EQ(
      Text({.algorithm = Algorithm::kFixedWindow, .requests = 5, .align = Align::kCalendarYear}),
      "5 per calendar year, fixed_window");
  EXPECT_EQ(Text({.algorithm = Algorithm::kFixedWindow,
                  .requests = 5,
                  .align = Align::kCalendarDay,
                  .zone = base::TimeZone::Load("Europe/Berlin").value()}),
            "5 per calendar day in Europe/Berlin, fixed_window");
  EXPECT_EQ(Text({.algorithm = Algorithm::kFixedWindow,
                  .requests = 5,
                  .period = 20s,
                  .align = Align::kFirstHit}),
            "5 per 20s, fixed_window, align first_hit");
  EXPECT_EQ(Text({.algorithm = Algorithm::kSlidingWindowCounter,
                  .requests = 5,
                  .period = 20s,
                  .count_denied = true}),
            "5 per 20s, sliding_window_counter, count_denied");
  EXPECT_EQ(Text({.requests = 5, .period = 20s, .overdraw = true}),
            "5 per 20s, token_bucket, overdraw");
  algorithm::LimitSpec blocks{.requests = 5, .period = 20s};
  for (const uint32_t seconds : {60u, 600u})
    blocks.block.Add(algorithm::BlockLengths::Seconds(seconds));
  EXPECT_EQ(Text(blocks), "5 per 20s, token_bucket, block [1m, 10m]");
}

}  // namespace limit_text_test
}  // namespace headgate::rule
