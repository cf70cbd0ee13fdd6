#include "headgate/observe/log.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <sstream>

namespace headgate::observe {
namespace log_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

class LogTest : public ::testing::Test {
 protected:
  explicit LogTest(const LogOptions& options = {})
      : log(options, clock, std::make_shared<spdlog::sinks::ostream_sink_mt>(out)) {}

  // Returns and removes the lines written so far.
  std::vector<std::string> Lines() {
    std::vector<std::string> lines;
    std::istringstream in(out.str());
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    out.str("");
    return lines;
  }

  base::ManualClock clock{base::WallTime::FromNanos(1'790'000'000'123'000'000)};
  std::ostringstream out;
  Log log;
};

TEST_F(LogTest, AnEventIsOneLineOfNamesAndValues) {
  log.Warning(
      "rules.refused",
      {{"file", "edge.yaml"}, {"problems", uint64_t{2}}, {"kept", true}, {"delta", int64_t{-3}}});
  EXPECT_THAT(
      Lines(),
      ElementsAre(
          "2026-09-21T14:13:20.123Z warning rules.refused file=edge.yaml problems=2 kept=true "
          "delta=-3"));
}

class JsonLogTest : public LogTest {
 protected:
  JsonLogTest() : LogTest({.format = LogFormat::kJson}) {}
};

TEST_F(JsonLogTest, AnEventIsOneObjectOnALine) {
  for (int i = 0; i < 11; ++i) log.Info("flood", {{"i", int64_t{i}}});
  clock.Advance(1s);
  log.Tick();
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 11u);
  EXPECT_EQ(lines[0],
            R"({"time":"2026-09-21T14:13:20.123Z","level":"info","event":"flood","i":0})");
  EXPECT_THAT(lines[10],
              ::testing::EndsWith(
                  R"("level":"warning","event":"log.suppressed","name":"flood","lines":1})"));
}

TEST_F(LogTest, LinesBelowTheLevelAreNotWritten) {
  log.Debug("e");
  EXPECT_THAT(Lines(), ElementsAre());
  EXPECT_EQ(log.lines_dropped(), 0u);
}

TEST_F(LogTest, AnEventThatComesTooOftenIsHeldBackAndCounted) {
  for (int i = 0; i < 25; ++i) log.Info("flood", {{"i", int64_t{i}}});
  log.Info("other.event");
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 11u) << "ten of the flood; another event has a budget of its own";
  EXPECT_THAT(lines[9], ::testing::EndsWith("flood i=9"));
  EXPECT_EQ(log.lines_dropped(), 15u);

  clock.Advance(100ms);  // one more line is allowed
  log.Info("flood", {{"i", int64_t{25}}});
  EXPECT_THAT(Lines(),
              ElementsAre(::testing::EndsWith("warning log.suppressed name=flood lines=15"),
                          ::testing::EndsWith("info flood i=25")));
}

TEST_F(LogTest, TickSaysWhatWasHeldBackOfAnEventThatFellSilent) {
  for (int i = 0; i < 12; ++i) log.Info("flood");
  Lines();
  log.Tick();
  EXPECT_THAT(Lines(), ElementsAre()) << "still too soon";
  clock.Advance(1s);
  log.Tick();
  EXPECT_THAT(Lines(),
              ElementsAre(::testing::EndsWith("warning log.suppressed name=flood lines=2")));
  log.Tick();
  EXPECT_THAT(Lines(), ElementsAre());
}

TEST_F(LogTest, NamesMadeOfWhatVariesShareOneBudget) {
  for (size_t i = 0; i < Log::kEventsMax; ++i) log.Info(fmt::format("event{}", i));
  EXPECT_EQ(Lines().size(), Log::kEventsMax);
  for (int i = 0; i < 100; ++i) log.Info(fmt::format("more{}", i));
  EXPECT_EQ(Lines().size(), 10u);
}

}  // namespace log_test
}  // namespace headgate::observe
