#include "headgate/capacity/capacity_controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

namespace headgate::capacity {
namespace capacity_controller_test {

using base::Duration;
using base::Instant;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

// An upstream that answers `per_second` requests at even distances, and clients that always have
// another request.
class Saturated {
 public:
  explicit Saturated(CapacityController& controller) : controller_(controller) {}

  void Run(Duration time, int64_t per_second) {
    const Instant end = now_ + time;
    while (now_ < end) {
      while (controller_.HasRoom()) {
        controller_.OnSent(now_);
        sent_.push_back(now_);
      }
      controller_.OnRefused(RefusedBy::kLimit, now_);
      now_ += Duration(seconds(1)) / per_second;
      controller_.OnEnd(RequestEnd::kAnswered, sent_.front(), now_);
      sent_.pop_front();
    }
  }
  Instant now() const { return now_; }

 private:
  CapacityController& controller_;
  Instant now_{0};
  std::deque<Instant> sent_;
};

CapacityController Make(const CapacityOptions& options = {}) {
  return *CapacityController::Make(options);
}

TEST(CapacityController, SaysWhatIsWrongWithItsOptions) {
  const auto message = [](const CapacityOptions& options) {
    return std::string(CapacityController::Make(options).status().message());
  };
  EXPECT_EQ(message({}), "");
  EXPECT_THAT(message({.limit_min = 1}), HasSubstr("from 2 to 1048576, not from 1 to 4096"));
  EXPECT_THAT(message({.limit_min = 20}), HasSubstr("the first limit is from 20 to 4096, not 16"));
  EXPECT_THAT(message({.per_second_min = 0}), HasSubstr("not from 0 to 1000000"));
  EXPECT_THAT(message({.window = milliseconds(99)}), HasSubstr("100 ms to 1 minute"));
  EXPECT_THAT(message({.window_answers = 19}), HasSubstr("20 to 1000000 answers, not 19"));
}

TEST(CapacityController, HasRoomUpToItsLimit) {
  CapacityController controller = Make({.limit_first = 3});
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(controller.HasRoom());
    controller.OnSent(Instant{0});
  }
  EXPECT_FALSE(controller.HasRoom());
  controller.OnEnd(RequestEnd::kFailed, Instant{0}, Instant{1});
  EXPECT_TRUE(controller.HasRoom());
  EXPECT_EQ(controller.in_flight(), 2u);
}

TEST(CapacityController, KnowsNothingAtFirstAndLetsThePoolBeExceeded) {
  CapacityController controller = Make();
  EXPECT_EQ(controller.PerCycle(seconds(1)), std::nullopt);
  EXPECT_EQ(controller.LatencyBase(), std::nullopt);
  EXPECT_TRUE(controller.MayExceedPool(Instant{0}));
}

TEST(CapacityController, TellsTheCapacityOfACycleRoundedDown) {
  CapacityController controller = Make();
  Saturated upstream(controller);
  upstream.Run(seconds(10), 400);
  EXPECT_NEAR(static_cast<int>(*controller.PerCycle(seconds(10))), 4000, 20);
  EXPECT_EQ(controller.PerCycle(milliseconds(1)), 1u) << "at least one";
  EXPECT_FALSE(controller.MayExceedPool(upstream.now())) << "now and then only";
}

TEST(CapacityController, KeepsTheCapacityWithinItsBounds) {
  CapacityController low = Make({.per_second_max = 100});
  Saturated(low).Run(seconds(10), 400);
  EXPECT_EQ(low.PerCycle(seconds(1)), 100u);
  CapacityController high = Make({.per_second_min = 1000});
  Saturated(high).Run(seconds(10), 400);
  EXPECT_EQ(high.PerCycle(seconds(1)), 1000u);
}

TEST(CapacityController, KeepsTheLimitWithinItsBounds) {
  CapacityController controller = Make({.limit_min = 8, .limit_max = 12, .limit_first = 8});
  Saturated upstream(controller);
  for (int i = 0; i < 100; ++i) {
    upstream.Run(milliseconds(200), 400);
    // While the base latency is measured, fewer are in flight.
    EXPECT_LE(controller.limit(), 12u);
  }
}

TEST(CapacityController, ALimitThatIsMuchTooHighFalls) {
  CapacityController controller = Make({.limit_first = 200});
  Saturated upstream(controller);
  upstream.Run(seconds(40), 1000);
  EXPECT_LE(controller.limit(), 20u);
  EXPECT_NEAR(static_cast<int>(*controller.PerCycle(seconds(1))), 1000, 10);
}

// Long polls and requests that the client has left free their place, without a sample.
TEST(CapacityController, ARequestThatIsNoLongerWaitedForTeachesNothing) {
  CapacityController controller = Make();
  for (int64_t i = 0; i < 10'000; ++i) {
    const Instant sent = Instant{0} + milliseconds(i);
    controller.OnSent(sent);
    controller.OnEnd(RequestEnd::kLeft, sent, sent + milliseconds(1));
  }
  EXPECT_EQ(controller.in_flight(), 0u);
  EXPECT_EQ(controller.limit(), 16u);
  EXPECT_EQ(controller.PerCycle(seconds(1)), std::nullopt);
  EXPECT_EQ(controller.LatencyBase(), std::nullopt);
}

TEST(CapacityController, AnUpstreamThatHangsKeepsItsCapacity) {
  CapacityController controller = Make();
  Saturated upstream(controller);
  upstream.Run(seconds(10), 400);
  const uint32_t limit = controller.limit();
  Instant now = upstream.now();
  for (; now < upstream.now() + seconds(300); now += milliseconds(10))
    controller.OnRefused(RefusedBy::kLimit, now);
  EXPECT_NEAR(static_cast<int>(*controller.PerCycle(seconds(1))), 400, 4);
  EXPECT_EQ(controller.limit(), limit);
}

TEST(CapacityController, AClockThatGoesBackStandsStill) {
  CapacityController controller = Make();
  Saturated upstream(controller);
  upstream.Run(seconds(10), 400);
  for (int i = 0; i < 1000; ++i) {
    controller.OnSent(Instant{0});
    controller.OnEnd(RequestEnd::kAnswered, upstream.now(), Instant{0});
  }
  EXPECT_NEAR(static_cast<int>(*controller.PerCycle(seconds(1))), 400, 4);
}

TEST(CapacityController, AnEndlessPauseAndTheLatestInstantOverflowNothing) {
  CapacityController controller = Make();
  Saturated upstream(controller);
  upstream.Run(seconds(10), 400);
  controller.OnSent(base::kInstantMax);
  controller.OnEnd(RequestEnd::kAnswered, Instant{0}, base::kInstantMax);
  for (int i = 0; i < 1000; ++i) {
    controller.OnSent(base::kInstantMax);
    controller.OnEnd(RequestEnd::kFailed, Instant{0}, base::kInstantMax);
    controller.MayExceedPool(base::kInstantMax);
  }
  EXPECT_NEAR(static_cast<int>(*controller.PerCycle(seconds(1))), 400, 4);
  EXPECT_EQ(controller.PerCycle(hours(1000)), controller.PerCycle(hours(24))) << "a day at most";
}

// The same events and the same seed give the same answers.
TEST(CapacityController, Repeats) {
  const auto run = [] {
    CapacityController controller = Make({.seed = 7});
    Saturated upstream(controller);
    std::vector<uint32_t> limits;
    for (int i = 0; i < 1000; ++i) {
      upstream.Run(milliseconds(100), 300);
      limits.push_back(controller.limit());
    }
    return limits;
  };
  EXPECT_EQ(run(), run());
}

}  // namespace capacity_controller_test
}  // namespace headgate::capacity
