// The bounds of the table of docs/internals/capacity.md, which headgate_capacity_table prints.
#include "tests/capacity/noise.h"

#include <gtest/gtest.h>

#include "tests/capacity/rig.h"

namespace headgate::capacity {
namespace noise_test {

constexpr uint64_t kSeeds = 3;

struct Bounds {
  std::string_view name;
  double found_s = 10;
  double followed_s = 5;
  double goodput_percent = 90;
  double goodput_then_percent = 90;
  double quiet_in_flight_percent = 0.5;
};

// The options that differ from the defaults.
constexpr Bounds kBounds[] = {
    // The capacity is found a little too low, and the pool keeps a part of it for quiet clients.
    {.name = "1 ms or 100 ms",
     .found_s = 30,
     .followed_s = 20,
     .goodput_percent = 85,
     .goodput_then_percent = 85},
    // The upstream answers nobody for 7 % of the time.
    {.name = "pauses of 500 ms", .quiet_in_flight_percent = 2},
    {.name = "base latency is five times as long", .followed_s = 25, .quiet_in_flight_percent = 1},
    {.name = "twice as many workers", .followed_s = 15},
    {.name = "sheds load beyond 5 that wait", .found_s = 15},
    // The pool keeps a part for quiet clients, and lends it at the end of a cycle of 1 s, when the
    // last burst has passed.
    {.name = "a burst each 100 ms", .found_s = 20, .goodput_then_percent = 85},
    // It takes 20 s until the limit lets a whole burst through.
    {.name = "a burst each second",
     .found_s = 30,
     .goodput_percent = 60,
     .goodput_then_percent = 80,
     .quiet_in_flight_percent = 10},
};

Bounds BoundsOf(const Noise& noise) {
  for (const Bounds& bounds : kBounds) {
    if (bounds.name == noise.name) return bounds;
  }
  return {.name = noise.name};
}

TEST(Noises, AreMeasuredAndUsed) {
  for (const Noise& noise : Noises()) {
    SCOPED_TRACE(noise.name);
    const Bounds bounds = BoundsOf(noise);
    const NoiseResult worst = Measure(noise, kSeeds);
    EXPECT_LE(worst.found_s, bounds.found_s);
    EXPECT_LE(worst.followed_s, bounds.followed_s);
    EXPECT_LE(worst.off_percent, 15);
    EXPECT_GE(worst.goodput_percent, bounds.goodput_percent);
    EXPECT_GE(worst.goodput_then_percent, bounds.goodput_then_percent);
    EXPECT_LE(worst.quiet_in_flight_percent, bounds.quiet_in_flight_percent);
  }
}

// Two clients come together each 3 s. A limit that let a whole burst through would make everybody
// wait for 3 s, so part of it is refused. The rate of the answers is not the capacity then.
TEST(Noises, BurstsThatAreFarApartTeachNothing) {
  Sharing sharing({.clients = {{"A", 500, seconds(3)}, {"B", 500, seconds(3)}}});
  sharing.Run(minutes(3));
  EXPECT_EQ(sharing.Found(), 0);
  sharing.TakeLoad(0);
  sharing.Run(seconds(30));
  const ClientLoad load = sharing.TakeLoad(0);
  EXPECT_GT(load.answered, 0u);
  EXPECT_LE(load.latency_sum / static_cast<int64_t>(load.answered), milliseconds(700));
}

TEST(Noises, ASteadyStormAfterBurstsMeetsAShortQueueAgain) {
  Sharing sharing({.clients = {{"A", 2000, seconds(1)}, {"B", 0}}});
  sharing.Run(seconds(40));
  EXPECT_GE(sharing.limit(), 300u);
  sharing.SetRate(0, 0);
  sharing.SetRate(1, 2000);
  sharing.Run(minutes(1));
  EXPECT_LE(sharing.limit(), 24u);
  EXPECT_NEAR(sharing.Found(), 1000, 150);
}

// Hours in which one client asks now and then, and the other does not.
TEST(Noises, IdleHoursTeachNothing) {
  Sharing sharing({.clients = {{"A", 20}, {"B", 1980}}});
  sharing.Run(seconds(30));
  const double known = sharing.Found();
  EXPECT_NEAR(known, 1000, 150);
  const uint32_t limit = sharing.limit();
  sharing.SetRate(0, 0.1);
  sharing.SetRate(1, 0);
  sharing.Run(std::chrono::hours(3));
  EXPECT_EQ(sharing.Found(), known);
  EXPECT_EQ(sharing.limit(), limit);
}

// All connections are refused for 5 s. The capacity stays, and afterwards answers are as many as
// before within a second.
TEST(Noises, ARestartOfTheUpstreamChangesNothing) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Sharing sharing({.seed = seed, .clients = {{"A", 20}, {"B", 1980}}});
    sharing.Run(seconds(30));
    const double known = sharing.Found();
    sharing.Restart(seconds(5));
    sharing.Run(seconds(5));
    EXPECT_EQ(sharing.Found(), known);
    sharing.Run(seconds(1));
    sharing.TakeAnswered();
    sharing.Run(seconds(5));
    EXPECT_GE(sharing.TakeAnswered(), 4500u);
  }
}

}  // namespace noise_test
}  // namespace headgate::capacity
