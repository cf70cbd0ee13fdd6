#include "headgate/front/answer/limit_answer.h"

#include <gtest/gtest.h>

#include <string>

#include "headgate/store/memory.h"

namespace headgate::front::answer {
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

}  // namespace limit_answer_test
}  // namespace headgate::front::answer
