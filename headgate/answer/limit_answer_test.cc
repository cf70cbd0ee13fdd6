#include "headgate/answer/limit_answer.h"

#include <gtest/gtest.h>

#include <string>

#include "headgate/answer/answer_rig.h"
#include "headgate/store/memory.h"

namespace headgate::answer {
namespace limit_answer_test {

using namespace std::chrono_literals;

// The time of day was two hours behind and has been set. Decisions do not follow at once.
TEST(LimitAnswer, StatesTheTimeOfDayOfTheReset) {
  constexpr base::Instant kNow = base::Instant::FromNanos(1'700'000'000'000'000'000);
  base::ManualClock clock{base::WallTime::FromNanos(kNow.ns)};
  store::MemoryStore store{{.max_buckets = 64}};
  limiter::Limiter limiter{store, nullptr};
  limiter::Checker checker{limiter};
  LimitAnswer answer(checker, {.dialect = wire::RateLimitDialect::kGithub,
                               .retry_after_jitter_percent = 0,
                               .partition_secret = {},
                               .clock = &clock});
  wire::RateLimitState state;
  state.limit = 5;
  state.reset_after = 60s;
  const auto reset = [&]() {
    std::string found;
    answer.EmitFields(state, kNow, [&](std::string_view name, std::string_view value) {
      if (name == "X-RateLimit-Reset") found = value;
    });
    return found;
  };
  EXPECT_EQ(reset(), "1700000060");
  clock.StepWall(2h);
  EXPECT_EQ(reset(), "1700007260");
}

// Whichever field clients obey, clients that were denied together do not come back together.
TEST(LimitAnswer, TheJitterIsInEveryFieldOfADenial) {
  store::MemoryStore store{{.max_buckets = 64}};
  limiter::Limiter limiter{store, nullptr};
  limiter::Checker checker{limiter};
  LimitAnswer answer(checker, {.dialect = wire::RateLimitDialect::kAll,
                               .retry_after_jitter_percent = 50,
                               .partition_secret = {}});
  const rule::Rule rule = Named("r");
  const rule::Entry entry{"k", "v"};
  const rule::Descriptor descriptor{.entries = {&entry, 1}};
  limiter::Response response;
  response.allowed = false;
  response.descriptors = {Denied(&rule, 10s)};
  base::Duration longest{0};
  for (int i = 0; i < 100; ++i) {
    const auto state = answer.StateOf({.domain = "d", .descriptors = {&descriptor, 1}}, 1, response,
                                      base::Instant::FromNanos(1));
    const base::Duration more = *state->retry_after - 10s;
    EXPECT_GE(more, 0s);
    EXPECT_LE(more, 5s);
    EXPECT_EQ(state->reset_after, 2min + more);
    longest = std::max(longest, more);
  }
  EXPECT_GT(longest, 1s);
}

// Half of a wait of a month would be two weeks.
TEST(LimitAnswer, TheJitterHasABoundBesideThePercentage) {
  store::MemoryStore store{{.max_buckets = 64}};
  limiter::Limiter limiter{store, nullptr};
  limiter::Checker checker{limiter};
  LimitAnswer answer(checker, {.retry_after_jitter_percent = 50, .retry_after_jitter_max = 3s});
  const rule::Rule rule = Named("r");
  const rule::Entry entry{"k", "v"};
  const rule::Descriptor descriptor{.entries = {&entry, 1}};
  const auto longest_of = [&](base::Duration wait) {
    limiter::Response response;
    response.allowed = false;
    response.descriptors = {Denied(&rule, wait)};
    base::Duration longest{0};
    for (int i = 0; i < 200; ++i) {
      const auto state = answer.StateOf({.domain = "d", .descriptors = {&descriptor, 1}}, 1,
                                        response, base::Instant::FromNanos(1));
      longest = std::max(longest, *state->retry_after - wait);
    }
    return longest;
  };
  EXPECT_LE(longest_of(30 * 24h), 3s);
  EXPECT_GT(longest_of(30 * 24h), 2s);
  EXPECT_LE(longest_of(4s), 2s);
}

}  // namespace limit_answer_test
}  // namespace headgate::answer
