#include "headgate/base/clock.h"

#include <random>

namespace headgate::base {
namespace clock_test {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr WallTime kStart{1'790'000'000'000'000'000};

Instant AtStart(Duration d) { return Instant::FromNanos(kStart.ns) + d; }

TEST(DisciplinedClock, StartsAtTheWallTimeAndFollowsWhatPasses) {
  ManualClock clock(kStart);
  clock.Advance(seconds(5));  // the machine has been running before
  DisciplinedClock disciplined(clock);
  EXPECT_EQ(disciplined.Now(), AtStart(seconds(5)));
  clock.Advance(milliseconds(1));
  EXPECT_EQ(disciplined.Now(), AtStart(seconds(5) + milliseconds(1)));
}

TEST(DisciplinedClock, CountsTheTimeThatTheMachineSlept) {
  ManualClock clock(kStart);
  DisciplinedClock disciplined(clock);
  clock.Advance(hours(8));  // CLOCK_BOOTTIME keeps counting while the machine is suspended
  EXPECT_EQ(disciplined.Now(), AtStart(hours(8)));
}

TEST(DisciplinedClock, IsNotMovedByAStepOfTheWallClock) {
  for (const Duration step : {Duration(hours(1)), Duration(hours(-1))}) {
    ManualClock clock(kStart);
    DisciplinedClock disciplined(clock);
    clock.StepWall(step);
    EXPECT_EQ(disciplined.Now(), AtStart(seconds(0)));
    EXPECT_EQ(disciplined.Discipline(), step) << "nothing has passed";
    EXPECT_EQ(disciplined.Now(), AtStart(seconds(0)));
  }
}

TEST(DisciplinedClock, IsDrawnTowardsTheWallByAtMost500PartsPerMillion) {
  ManualClock clock(kStart);
  DisciplinedClock disciplined(clock);
  clock.StepWall(hours(1));
  clock.Advance(seconds(1));
  EXPECT_EQ(disciplined.Discipline(), hours(1) - microseconds(500));
  EXPECT_EQ(disciplined.Now(), AtStart(seconds(1) + microseconds(500)));
  clock.StepWall(hours(-2));
  clock.Advance(seconds(2));
  EXPECT_EQ(disciplined.Discipline(), hours(-1) - microseconds(500) + microseconds(1000));
  EXPECT_EQ(disciplined.Now(), AtStart(seconds(3) - microseconds(500)));
}

TEST(DisciplinedClock, StopsExactlyAtTheWall) {
  ManualClock clock(kStart);
  DisciplinedClock disciplined(clock);
  clock.StepWall(microseconds(-700));
  clock.Advance(seconds(1));
  EXPECT_EQ(disciplined.Discipline(), microseconds(-200));
  clock.Advance(seconds(1));
  EXPECT_EQ(disciplined.Discipline(), seconds(0));
  EXPECT_EQ(disciplined.Now().ns, clock.WallNow().ns);
}

TEST(DisciplinedClock, MakesAnHoursErrorGoodInEightyThreeDays) {
  ManualClock clock(kStart);
  DisciplinedClock disciplined(clock);
  clock.StepWall(hours(1));
  int days_passed = 0;
  do {
    clock.Advance(days(1));
    ++days_passed;
  } while (disciplined.Discipline() != seconds(0));
  EXPECT_EQ(days_passed, 84);
}

TEST(DisciplinedClock, GoesBackByNoMoreThanItIsSlewed) {
  std::mt19937_64 random(7);
  ManualClock clock(kStart);
  DisciplinedClock disciplined(clock);
  for (int i = 0; i < 10'000; ++i) {
    const Instant before = disciplined.Now();
    const Duration passed(static_cast<int64_t>(random() % 2'000'000'000));
    clock.StepWall(Duration(static_cast<int64_t>(random() % 2'000'001) - 1'000'000));
    clock.Advance(passed);
    disciplined.Discipline();
    const Duration moved = disciplined.Now() - before;
    ASSERT_GE(moved, passed - passed / 2000);
    ASSERT_LE(moved, passed + passed / 2000);
  }
}

TEST(DisciplinedClock, NeverAnswersAnInstantThatDecisionsCannotComputeWith) {
  ManualClock clock(WallTime::FromNanos(0));
  DisciplinedClock disciplined(clock);
  clock.Advance(hours(-1));
  EXPECT_EQ(disciplined.Now(), Instant::FromNanos(0));
  clock.Advance(kDurationMax);
  clock.Advance(hours(24));
  EXPECT_EQ(disciplined.Now(), kInstantMax);
}

TEST(SystemClock, ReadsBothClocksOfTheMachine) {
  const SystemClock clock;
  const BootTime boot = clock.BootNow();
  EXPECT_GT(boot, BootTime::FromNanos(0));
  EXPECT_GE(clock.BootNow(), boot);
  EXPECT_GT(clock.WallNow(), WallTime::FromNanos(1'700'000'000'000'000'000))
      << "later than November 2023";
}

}  // namespace clock_test
}  // namespace headgate::base
