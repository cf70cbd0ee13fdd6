// CL.THROTTLE allocates nothing once its limits are known and, for shared buckets, once leases
// exist.
#include "headgate/front/resp/conversation.h"
#include "headgate/limiter/shared/shared_decider.h"
#include "headgate/testing/count_allocations.h"
#include "headgate/testing/manual_shared_store.h"

namespace headgate::front::resp {
namespace throttle_allocation_test {

TEST(ClThrottle, AllocatesNothingInSteadyState) {
  World world;
  RespSession session(world.context, {});
  std::string input;
  for (int i = 0; i < 32; ++i) {
    input += Conversation::Bytes(
        {"CL.THROTTLE", "user" + std::to_string(i % 7), "15", std::to_string(30 + i % 3), "60"});
  }
  // The last command arrives in two reads.
  const std::string_view first = std::string_view(input).substr(0, input.size() - 9);
  std::string output;
  base::Instant now = base::Instant::FromNanos(1'790'000'000'000'000'000);
  uint64_t before = 0;
  for (int round = 0; round < 100; ++round) {
    if (round == 2) before = testing::allocation_count;
    output.clear();
    const auto progress = session.OnBytes(first, output, now);
    session.OnBytes(std::string_view(input).substr(progress.consumed), output, now);
    now += std::chrono::milliseconds(100);
  }
  EXPECT_EQ(testing::allocation_count, before);
  EXPECT_EQ(world.context.counters.commands.value(), 3200u);
}

TEST(ClThrottle, AllocatesNothingForDecisionsFromLeases) {
  base::Instant now = base::Instant::FromNanos(1'790'000'000'000'000'000);
  store::MemoryStore store{store::MemoryOptions{.max_buckets = 4096}};
  testing::ManualSharedStore shared(store, now);
  shared.at_once = true;
  limiter::Limiter limiter(store, nullptr);
  limiter::lease::LeaseBooks leases({.node = 1, .keys_max = 64}, 1);
  limiter::shared::SharedDecider fleet(shared, store, {.leases = &leases});
  limiter::Checker checker(limiter, 0, fleet, {});
  access::Access access;
  Context context({.checker = checker, .access = access, .version = "1"});
  RespSession session(context, {});
  std::string input;
  for (int i = 0; i < 32; ++i) {
    input += Conversation::Bytes(
        {"CL.THROTTLE", "user" + std::to_string(i % 7), "1000000", "1000000", "60"});
  }
  std::string output;
  uint64_t before = 0, leased_before = 0;
  for (int round = 0; round < 210; ++round) {
    // By now the leases are large enough that none is renewed.
    if (round == 200) {
      before = testing::allocation_count;
      leased_before = fleet.decisions(limiter::Mode::kLeased);
    }
    output.clear();
    session.OnBytes(input, output, now);
  }
  EXPECT_EQ(fleet.decisions(limiter::Mode::kLeased) - leased_before, 320u);
  EXPECT_EQ(testing::allocation_count, before);
}

}  // namespace throttle_allocation_test
}  // namespace headgate::front::resp
