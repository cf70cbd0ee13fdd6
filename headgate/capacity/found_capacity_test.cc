// A controller that begins with the capacity that another one has found.
#include "headgate/capacity/found_capacity.h"

#include <gtest/gtest.h>

#include "headgate/capacity/capacity_controller.h"

namespace headgate::capacity {
namespace found_capacity_test {

using base::Instant;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kNow = Instant::FromNanos(1'000'000'000);
constexpr FoundCapacity kFound{
    .per_1000_s = 400'000, .limit = 18, .latency_base = milliseconds(25)};

CapacityController Make(const CapacityOptions& options = {}) {
  return *CapacityController::Make(options);
}

TEST(FoundCapacity, IsEmptyBeforeOneIsFound) { EXPECT_EQ(Make().Found(), std::nullopt); }

TEST(FoundCapacity, IsInForceAtOnce) {
  CapacityController controller = Make();
  controller.BeginWith(kFound, kNow);
  EXPECT_EQ(controller.Found(), kFound);
  EXPECT_EQ(controller.PerCycle(seconds(10)), 4'000u);
  EXPECT_EQ(controller.limit(), 18u);
  EXPECT_EQ(controller.LatencyBase(), milliseconds(25));
  EXPECT_FALSE(controller.MayExceedPool(kNow)) << "it is not searched for";
}

TEST(FoundCapacity, IsClampedToTheBounds) {
  CapacityController controller = Make({.limit_max = 17, .per_second_max = 300});
  controller.BeginWith(kFound, kNow);
  EXPECT_EQ(controller.PerCycle(seconds(1)), 300u);
  EXPECT_EQ(controller.limit(), 17u);
  CapacityController nothing = Make();
  nothing.BeginWith({}, kNow);
  EXPECT_EQ(nothing.Found(), std::nullopt);
}

}  // namespace found_capacity_test
}  // namespace headgate::capacity
