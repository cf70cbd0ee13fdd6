// The path of CL.THROTTLE allocates nothing once its limits are known.
#include "headgate/front/resp/conversation.h"
#include "headgate/testing/count_allocations.h"

namespace headgate::front::resp {
namespace {

TEST(ClThrottle, AllocatesNothingInSteadyState) {
  World world;
  RespSession session(world.context, {});
  std::string input;
  for (int i = 0; i < 32; ++i) {
    input +=
        Conversation::Bytes({"CL.THROTTLE", "user" + std::to_string(i % 7), "15", std::to_string(30 + i % 3), "60"});
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

}  // namespace
}  // namespace headgate::front::resp
