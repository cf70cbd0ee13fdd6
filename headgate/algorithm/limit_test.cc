#include "headgate/algorithm/limit.h"

#include <chrono>

namespace headgate::algorithm {
namespace limit_test {

using base::Duration;
using std::chrono::seconds;
using ::testing::HasSubstr;

std::string ProblemOf(const LimitSpec& spec) {
  const auto limit = Limit::Make(spec);
  return limit.ok() ? "" : std::string(limit.status().message());
}

TEST(Limit, LeftOutBurstIsTheNumberOfRequests) {
  EXPECT_EQ(Limit::Make({.requests = 10, .period = seconds(20)})->capacity(), 10u);
  EXPECT_EQ(Limit::Make({.requests = 10, .period = seconds(20), .burst = 3})->capacity(), 3u);
  EXPECT_EQ(Limit::Make(
                {.algorithm = Algorithm::kSlidingWindowLog, .requests = 10, .period = seconds(20)})
                ->capacity(),
            10u);
}

TEST(Limit, ADefaultConstructedOneDeniesEverything) {
  EXPECT_TRUE(Limit().denies_all());
  EXPECT_EQ(Limit().capacity(), 0u);
}

TEST(Limit, KnowsItsIntervalExactly) {
  const Limit seven = *Limit::Make({.requests = 7, .period = seconds(60), .burst = 3});
  EXPECT_EQ(seven.interval(), 60'000'000'000u / 7);
  EXPECT_EQ(seven.interval_fraction(), 60'000'000'000u % 7);
  EXPECT_EQ(seven.span(), 180'000'000'000u / 7);
  EXPECT_EQ(seven.span_fraction(), 180'000'000'000u % 7);
}

TEST(Limit, SaysWhatIsWrongWithAWordThatDoesNotBelong) {
  EXPECT_THAT(
      ProblemOf(
          {.algorithm = Algorithm::kFixedWindow, .requests = 1, .period = seconds(1), .burst = 2}),
      HasSubstr("burst has no meaning for fixed_window"));
  EXPECT_THAT(ProblemOf({.requests = 1, .period = seconds(1), .align = Align::kFirstHit}),
              HasSubstr("only fixed_window can be aligned"));
  EXPECT_THAT(ProblemOf({.algorithm = Algorithm::kSlidingWindowLog,
                         .requests = 1,
                         .period = seconds(1),
                         .count_denied = true}),
              HasSubstr("count_denied belongs to fixed_window and sliding_window_counter"));
}

TEST(Limit, RefusesAPeriodOrABurstOfNothing) {
  EXPECT_EQ(ProblemOf({.requests = 1}), "the period must be longer than 0");
  EXPECT_EQ(ProblemOf({.requests = 1, .period = seconds(-1)}), "the period must be longer than 0");
  EXPECT_THAT(ProblemOf({.requests = 1, .period = seconds(1), .burst = 0}),
              HasSubstr("burst must be 1 or more"));
  EXPECT_EQ(ProblemOf({.algorithm = Algorithm::kLeakyBucketQueue,
                       .requests = 1,
                       .period = seconds(1),
                       .burst = 0}),
            "");
  EXPECT_EQ(
      ProblemOf(
          {.algorithm = Algorithm::kFixedWindow, .requests = 1, .align = Align::kCalendarMonth}),
      "")
      << "the calendar knows its own period";
}

TEST(Limit, RefusesWhatItsKernelCouldNotCount) {
  constexpr uint64_t k2To32 = uint64_t{1} << 32;
  const Duration longest_window(int64_t{1} << 60);
  EXPECT_EQ(ProblemOf({.requests = k2To32 - 1, .period = seconds(1)}), "");
  EXPECT_EQ(ProblemOf({.requests = k2To32, .period = Duration(1024)}), "")
      << "4194304 per ns, in smaller numbers";
  EXPECT_THAT(ProblemOf({.requests = k2To32, .period = Duration(1023)}),
              HasSubstr("at most 4294967295 requests"));
  EXPECT_THAT(
      ProblemOf({.algorithm = Algorithm::kFixedWindow, .requests = k2To32, .period = seconds(1)}),
      HasSubstr("at most 4294967295 requests"));
  EXPECT_THAT(
      ProblemOf(
          {.algorithm = Algorithm::kSlidingWindowLog, .requests = 100'001, .period = seconds(1)}),
      HasSubstr("at most 100000 requests"));
  EXPECT_EQ(
      ProblemOf({.algorithm = Algorithm::kFixedWindow, .requests = 1, .period = longest_window}),
      "");
  EXPECT_THAT(ProblemOf({.algorithm = Algorithm::kFixedWindow,
                         .requests = 1,
                         .period = longest_window + Duration(1)}),
              HasSubstr("36 years"));
  EXPECT_EQ(ProblemOf({.requests = 1, .period = base::kDurationMax}), "");
  EXPECT_THAT(ProblemOf({.requests = 1, .period = base::kDurationMax, .burst = 2}),
              HasSubstr("146 years"));
  EXPECT_THAT(ProblemOf({.requests = 1, .period = base::kDurationMax + Duration(1)}),
              HasSubstr("146 years"));
  EXPECT_THAT(ProblemOf({.requests = 1, .period = Duration(1), .burst = ~uint64_t{0}}),
              HasSubstr("146 years"));
}

TEST(Limit, BoundsAQueueByTheLastTurnThatItPromises) {
  LimitSpec spec{.algorithm = Algorithm::kLeakyBucketQueue,
                 .requests = 1,
                 .period = Duration(int64_t{1} << 61),
                 .burst = 0};
  EXPECT_EQ(ProblemOf(spec), "");
  spec.burst = 1;
  EXPECT_THAT(ProblemOf(spec), HasSubstr("146 years"));
}

TEST(AlgorithmNames, AreReadBackAndGcraIsTheTokenBucket) {
  for (const auto algorithm :
       {Algorithm::kTokenBucket, Algorithm::kLeakyBucket, Algorithm::kLeakyBucketQueue,
        Algorithm::kFixedWindow, Algorithm::kSlidingWindowCounter, Algorithm::kSlidingWindowLog}) {
    EXPECT_EQ(AlgorithmByName(Name(algorithm)), algorithm);
  }
  EXPECT_EQ(AlgorithmByName("gcra"), Algorithm::kTokenBucket);
  EXPECT_EQ(AlgorithmByName("Token_Bucket"), std::nullopt);
  EXPECT_EQ(AlgorithmByName(""), std::nullopt);
}

}  // namespace limit_test
}  // namespace headgate::algorithm
