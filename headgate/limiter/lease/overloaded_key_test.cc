// One key with more demand on several instances than its limit allows: the number of calls for each
// instance, the share that each is granted, and how much is admitted in all.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>
#include <vector>

#include "headgate/limiter/lease/ask_budget.h"
#include "headgate/testing/lease_node.h"

namespace headgate::limiter::lease {
namespace overloaded_key_test {

using base::BootTime;
using base::Duration;
using namespace std::chrono_literals;

struct Crowd {
  const char* name;
  int64_t rate;  // per second, and also the burst
  size_t instances;
  int64_t demand_percent;  // of the rate, all instances together
  bool full = true;        // the bucket is full at the beginning
  uint64_t burst = 0;      // 0: the refill of a second
  bool window = false;     // a fixed window of a second, not a bucket
  bool in_turn = false;    // the instances are asked in a fixed order
};
void PrintTo(const Crowd& crowd, std::ostream* out) { *out << crowd.name; }

class OverloadedKey : public ::testing::TestWithParam<Crowd> {};

TEST_P(OverloadedKey, CostsEachInstanceFewCallsAndIsSharedFairly) {
  const Crowd& crowd = GetParam();
  store::LimitTable limits;
  const uint64_t burst = crowd.burst != 0 ? crowd.burst : static_cast<uint64_t>(crowd.rate);
  const store::LimitHandle limit = *limits.Intern(*algorithm::Limit::Make(
      {.algorithm =
           crowd.window ? algorithm::Algorithm::kFixedWindow : algorithm::Algorithm::kTokenBucket,
       .requests = static_cast<uint64_t>(crowd.rate),
       .period = 1s,
       .burst = crowd.window ? std::nullopt : std::optional<uint64_t>(burst)}));
  const BootTime start = BootTime{0} + 10s;
  BootTime now = start;
  testing::LeasedBucket bucket;
  const auto ask = [&](const store::LeaseAsk& asked) {
    return bucket.Ask(limit->limit, asked, base::Instant::FromNanos(now.ns));
  };
  if (!crowd.full) ask({.id = {.node = 99}, .cost = burst});
  std::vector<std::unique_ptr<testing::LeaseNode>> nodes;
  for (size_t i = 0; i < crowd.instances; ++i) {
    const LeaseBookOptions options{
        .node = i + 1, .keys_max = 8, .instances = [&] { return uint32_t(crowd.instances); }};
    nodes.push_back(std::make_unique<testing::LeaseNode>(options, ask, [&] { return now; }));
  }

  // Every instance has the same demand.
  const Duration between = Duration(1s) * 100 / (crowd.rate * crowd.demand_percent);
  std::vector<int64_t> admitted(crowd.instances), calls(crowd.instances);
  size_t turn = 0, next = 0;
  for (; now < start + 13s; now = now + between) {
    const bool counting = now >= start + 3s;
    // Not in a fixed order, which could coincide with the pauses.
    turn = turn * 6364136223846793005 + 1442695040888963407;
    const size_t i = crowd.in_turn ? next++ % nodes.size() : (turn >> 33) % nodes.size();
    const int64_t before = nodes[i]->calls;
    const bool allowed = nodes[i]->Take(*limit).allowed;
    nodes[i]->OnTime();
    if (!counting) continue;
    admitted[i] += allowed ? 1 : 0;
    calls[i] += nodes[i]->calls - before;
  }

  const Duration each = Duration(1s) / crowd.rate;
  const Duration pause = std::min<Duration>(std::clamp<Duration>(each, 20ms, 50ms),
                                            each * static_cast<int64_t>(burst) / 16);
  int64_t sum = 0;
  for (const int64_t one : admitted) sum += one;
  for (size_t i = 0; i < crowd.instances; ++i) {
    EXPECT_LE(calls[i], 10s / pause + AskBudget::kAtOnce)
        << "calls of instance " << i << " in 10 s";
    EXPECT_GE(admitted[i] * static_cast<int64_t>(crowd.instances) * 10, sum * 4)
        << "instance " << i << " of " << sum;
  }
  EXPECT_GE(sum, crowd.rate * 10 * 99 / 100);
  EXPECT_LE(sum, crowd.rate * 10 + static_cast<int64_t>(burst));
}

INSTANTIATE_TEST_SUITE_P(
    Limiter, OverloadedKey,
    ::testing::Values(
        Crowd{"three", 1000, 3, 600, false}, Crowd{"three_full", 1000, 3, 600, true},
        Crowd{"three_slightly", 600, 3, 120, false}, Crowd{"four", 2000, 4, 200, true},
        Crowd{"one", 2000, 1, 500, true}, Crowd{"one_slightly", 2000, 1, 130, false},
        Crowd{"three_slightly_more", 2000, 3, 130, false}, Crowd{"a_small_limit", 60, 3, 800, true},
        Crowd{"a_slow_limit_of_a_large_burst", 30, 3, 4000, true, 300},
        Crowd{"four_times_of_three", 300, 3, 400, true},
        Crowd{"of_a_small_burst", 1000, 3, 600, true, 250},
        Crowd{"eight_instances", 500, 8, 400, true}, Crowd{"quick", 100, 3, 300, true, 12},
        Crowd{"quick_of_one", 200, 1, 300, true, 20},
        Crowd{"quick_of_eight", 1000, 8, 300, true, 200},
        Crowd{
            .name = "a_window", .rate = 100, .instances = 5, .demand_percent = 400, .window = true},
        Crowd{"a_window_in_turn", 100, 5, 400, true, 0, true, true},
        Crowd{"a_window_of_three_in_turn", 100, 3, 300, true, 0, true, true},
        Crowd{"a_window_slightly", 100, 3, 130, true, 0, true, true},
        Crowd{"a_small_window_in_turn", 20, 5, 1000, true, 0, true, true},
        Crowd{"a_small_window_of_three_in_turn", 40, 3, 300, true, 0, true, true},
        Crowd{"a_small_bucket", 20, 5, 1000, true},
        Crowd{"a_small_bucket_of_five", 40, 5, 500, true},
        Crowd{"a_small_bucket_of_three", 40, 3, 300, true}, Crowd{"a_bucket", 100, 5, 400, true},
        Crowd{"a_bucket_slightly_in_turn", 1000, 3, 125, true, 0, false, true},
        Crowd{"an_abused_window", 300, 5, 10000, true, 0, true, true},
        Crowd{"a_window_of_eight", 1000, 8, 200, true, 0, true, true}),
    [](const auto& crowd) { return crowd.param.name; });

}  // namespace overloaded_key_test
}  // namespace headgate::limiter::lease
