#include "headgate/store/dynamodb/server_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "headgate/base/random.h"

namespace headgate::store::dynamodb {
namespace server_time_test {

using base::Duration;
using base::Instant;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr int64_t kStart = 1'790'000'000'000'000'000;

std::string DateOf(int64_t ns) {
  const std::time_t seconds = ns / 1'000'000'000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[64];
  const size_t size = std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return {text, size};
}

// Our clock is `ahead` of the server's.
struct Rig {
  // A call of `took`, whose answer is dated in its middle.
  std::optional<std::string> Call(Duration took = 5ms) {
    const Instant sent = Instant::FromNanos(server_ns) + ahead;
    const std::string date = DateOf(server_ns + took.count() / 2);
    server_ns += took.count();
    return time.OnAnswer(sent, sent + took, date);
  }
  void Wait() { server_ns += static_cast<int64_t>(random.Next() % 300'000'000); }
  // How far the time of decisions is ahead of the server's.
  Duration Error() const {
    const Instant ours = clock.Now();
    return time.Now().value_or(ours) - (ours - ahead);
  }

  base::ManualClock source{base::WallTime::FromNanos(kStart)};
  base::DisciplinedClock clock{source};
  ServerTime time{clock};
  base::Random random{1};
  int64_t server_ns = kStart + 700'000'000;
  Duration ahead{0};
};

TEST(ServerTime, OneAnswerCorrectsAClockThatIsSecondsOff) {
  for (const Duration ahead : {Duration(5s), Duration(-3s), Duration(1600ms)}) {
    Rig rig;
    rig.ahead = ahead;
    EXPECT_FALSE(rig.time.offset().has_value());
    const auto alarm = rig.Call(20ms);
    ASSERT_TRUE(alarm.has_value());
    EXPECT_THAT(*alarm, HasSubstr("decisions are corrected by this"));
    EXPECT_LE(std::chrono::abs(rig.Error()), 510ms);
  }
}

// Every answer leaves a smaller error than docs/guides/strict-dynamodb.md promises for one.
TEST(ServerTime, AClockThatIsNotNoticedIsWrongByAtMostASecond) {
  for (int64_t phase_ms = 0; phase_ms < 1000; phase_ms += 10) {
    for (int64_t ahead_ms = -2000; ahead_ms <= 2000; ahead_ms += 10) {
      Rig rig;
      rig.server_ns += phase_ms * 1'000'000;
      rig.ahead = std::chrono::milliseconds(ahead_ms);
      const bool is_noticed = rig.Call(20ms).has_value();
      EXPECT_LE(std::chrono::abs(rig.Error()), is_noticed ? 510ms : 1050ms) << ahead_ms;
    }
  }
}

// Heartbeats alone.
TEST(ServerTime, AFewAnswersAMinuteTellItToAFifthOfASecond) {
  Rig rig;
  rig.ahead = 700ms;
  for (int i = 0; i < 60; ++i) {
    rig.Call();
    rig.server_ns += 2'500'000'000 + static_cast<int64_t>(rig.random.Next() % 5'000'000'000);
    if (i > 24) {
      EXPECT_LE(std::chrono::abs(rig.Error()), 200ms) << i;
    }
  }
}

TEST(ServerTime, AClockThatMayBeRightIsLeftAlone) {
  for (const Duration ahead : {0ms, 20ms, -20ms}) {
    Rig rig;
    rig.ahead = ahead;
    for (int i = 0; i < 2000; ++i, rig.Wait()) {
      EXPECT_FALSE(rig.Call().has_value());
      EXPECT_FALSE(rig.time.Now().has_value());
    }
  }
}

TEST(ServerTime, ManyAnswersTellItMoreClosely) {
  Rig rig;
  rig.ahead = 100ms;
  for (int i = 0; i < 300; ++i, rig.Wait()) rig.Call();
  EXPECT_LE(std::chrono::abs(rig.Error()), 50ms);
  EXPECT_LE(std::chrono::abs(*rig.time.offset() - 100ms), 50ms);
  // Somebody has set the clock.
  for (const Duration ahead : {0s, -7s}) {
    rig.ahead = ahead;
    for (int i = 0; i < 300; ++i, rig.Wait()) rig.Call();
    EXPECT_LE(std::chrono::abs(rig.Error()), 50ms);
  }
}

TEST(ServerTime, AnAnswerWithoutADateTellsNothing) {
  Rig rig;
  const Instant now = rig.clock.Now();
  for (const std::string date : {"", "soon", "Tue, 99 Nov 1994"}) {
    EXPECT_FALSE(rig.time.OnAnswer(now, now, date).has_value());
  }
  EXPECT_FALSE(rig.time.offset().has_value());
}

}  // namespace server_time_test
}  // namespace headgate::store::dynamodb
