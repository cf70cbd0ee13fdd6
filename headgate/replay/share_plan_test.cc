#include "headgate/replay/share_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::replay {
namespace share_plan_test {

using namespace std::chrono_literals;

constexpr base::Instant kStart = base::Instant::FromNanos(1'795'601'635'000'000'000);

SharePlanner Planner(uint64_t capacity, algorithm::Ratio reservation = {1, 10}) {
  return *SharePlanner::Make({.capacity = capacity, .cycle = 10s, .reservation = reservation});
}

const ClientPlan& Of(const SharePlan& plan, std::string_view name) {
  static const ClientPlan none;
  for (const ClientPlan& client : plan.clients)
    if (client.name == name) return client;
  ADD_FAILURE() << "no client " << name;
  return none;
}

TEST(SharePlan, ShowsWhatEachClientWouldHaveBeenRefused) {
  SharePlanner planner = Planner(40);
  // All four are known in the first cycle, with 10 each; then the demands are 3, 15, 50 and 10, for
  // which the shares of the next cycle are 3, 11, 16 and 10 (algorithm/fair_share.h).
  const std::pair<const char*, int> demands[] = {{"a", 3}, {"b", 15}, {"c", 50}, {"d", 10}};
  for (const auto& [name, count] : demands) planner.Take(name, kStart);
  for (const auto& [name, count] : demands)
    for (int i = 1; i < count; ++i) planner.Take(name, kStart + 1s);
  for (const auto& [name, count] : demands)
    for (int i = 0; i < count; ++i) planner.Take(name, kStart + 11s);
  const SharePlan plan = planner.Finish();
  EXPECT_EQ(plan.requests, 2u * 78);
  EXPECT_EQ(Of(plan, "a").refused, 0u);
  EXPECT_EQ(Of(plan, "b").refused, (15u - 10) + (15 - 11));
  EXPECT_EQ(Of(plan, "c").refused, (50u - 10) + (50 - 16));
  EXPECT_EQ(Of(plan, "d").refused, 0u);
  EXPECT_EQ(plan.refused, 5u + 4 + 40 + 34);
  EXPECT_EQ(plan.clients[0].name, "c");
  EXPECT_EQ(plan.clients[0].most_in_cycle, 50u);
  EXPECT_EQ(plan.most_in_cycle, 78u);
  EXPECT_EQ(plan.cycles, 2u);
  EXPECT_EQ(plan.cycles_refusing, 2u);
  EXPECT_EQ(plan.last - plan.first, 11s);
}

TEST(SharePlan, SaysWhichCapacityMostCyclesNeed) {
  SharePlanner planner = *SharePlanner::Make({.capacity = 1000, .cycle = 10s, .is_paced = false});
  // 200 cycles with 1 to 200 requests: 99 % of them have at most 198.
  for (int cycle = 0; cycle < 200; ++cycle)
    for (int i = 0; i <= cycle; ++i) planner.Take("a", kStart + cycle * 10s);
  const SharePlan plan = planner.Finish();
  EXPECT_EQ(plan.capacity_for_most, 198u);
  EXPECT_EQ(plan.most_in_cycle, 200u);
  EXPECT_EQ(plan.refused, 0u);
}

TEST(SharePlan, LateLinesCountAtTheTimeOfTheLatestOne) {
  SharePlanner planner = Planner(1);
  planner.Take("a", kStart + 5s);
  planner.Take("a", kStart);
  planner.Take("a", kStart + 15s);
  const SharePlan plan = planner.Finish();
  EXPECT_EQ(plan.late, 1u);
  EXPECT_EQ(plan.refused, 1u);
  EXPECT_EQ(plan.first, kStart + 5s);
}

TEST(SharePlan, RequestsWithoutAClientAreRefusedOrShareOne) {
  for (const Anonymous anonymous : {Anonymous::kRefused, Anonymous::kShared}) {
    SharePlanner planner = *SharePlanner::Make({.capacity = 2, .cycle = 10s}, anonymous);
    for (int i = 0; i < 3; ++i) planner.Take("", kStart);
    const SharePlan plan = planner.Finish();
    EXPECT_EQ(Of(plan, "").requests, 3u);
    EXPECT_EQ(plan.refused, anonymous == Anonymous::kRefused ? 3u : 1u);
  }
}

TEST(SharePlan, ClientsBeyondTheBoundAreSummed) {
  SharePlanner planner = Planner(10);
  for (size_t i = 0; i < kPlannedClientsMax + 5; ++i) planner.Take(std::to_string(i), kStart);
  planner.Take("0", kStart);
  const SharePlan plan = planner.Finish();
  EXPECT_EQ(plan.clients.size(), kPlannedClientsMax);
  EXPECT_EQ(plan.others.requests, 5u);
  EXPECT_EQ(Of(plan, "0").requests, 2u);
}

TEST(SharePlan, OfNothingIsEmpty) {
  const SharePlan plan = Planner(1).Finish();
  EXPECT_EQ(plan.requests, 0u);
  EXPECT_EQ(plan.capacity_for_most, 0u);
  EXPECT_TRUE(plan.clients.empty());
  EXPECT_FALSE(SharePlanner::Make({.capacity = 0, .cycle = 10s}).ok());
}

}  // namespace share_plan_test
}  // namespace headgate::replay
