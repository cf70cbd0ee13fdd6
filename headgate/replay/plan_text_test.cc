#include "headgate/replay/plan_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::replay {
namespace plan_text_test {

using std::chrono::seconds;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(PlanText, HasARowForEachClientAndASummary) {
  const SharePlan plan{.requests = 5,
                       .refused = 2,
                       .most_in_cycle = 4,
                       .cycles = 2,
                       .cycles_refusing = 1,
                       .capacity_for_most = 4,
                       .first = base::Instant(0),
                       .last = base::Instant(0) + seconds(90),
                       .clients = {{.name = "ann", .requests = 4, .refused = 2, .most_in_cycle = 3},
                                   {.name = "", .requests = 1}}};
  const std::string text = TextOf(plan, seconds(60));
  EXPECT_THAT(text, ContainsRegex("\nann +4 +2 +50.0 % +3\n"));
  EXPECT_THAT(text, ContainsRegex("\n\\(no client\\) +1 +0 +0.0 %"));
  EXPECT_THAT(text, HasSubstr("\n2 of 5 requests refused (40.0 %), in 1 of 2 cycles with requests; "
                              "the log covers 90 s\n"));
  EXPECT_THAT(text, HasSubstr("the busiest cycle of 60 s had 4 requests; 99 % of the cycles had at "
                              "most 4\n"));
}

TEST(PlanText, SumsTheClientsBeyondTwenty) {
  SharePlan plan{.requests = 25};
  for (int i = 0; i < 25; ++i)
    plan.clients.push_back({.name = "c" + std::to_string(i), .requests = 1});
  const std::string text = TextOf(plan, seconds(1));
  EXPECT_THAT(text, ContainsRegex("\nc19 +1 +0"));
  EXPECT_THAT(text, Not(HasSubstr("c20")));
  EXPECT_THAT(text, ContainsRegex("\nall others +5 +0"));
}

}  // namespace plan_text_test
}  // namespace headgate::replay
