#include "headgate/app/runtime/connection_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <sstream>

#include "headgate/app/runtime/returned_memory.h"
#include "headgate/base/clock.h"

namespace headgate::app {
namespace connection_watch_test {

using namespace std::chrono_literals;

class WatchTest : public ::testing::Test {
 protected:
  std::string Step(base::Duration at) {
    text_.str("");
    watch_.Step(counters_, base::Instant::FromNanos(0) + at);
    return text_.str();
  }

  base::SystemClock clock_;
  std::ostringstream text_;
  observe::Log log_{{}, clock_, std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)};
  ConnectionWatch watch_{log_};
  net::Counters counters_;
};

TEST_F(WatchTest, SaysAtOnceThatClientsAreRefusedAndThenRarely) {
  EXPECT_EQ(Step(1s), "");
  counters_.refused_total_limit = 3;
  EXPECT_THAT(Step(2s), ::testing::AllOf(
                            ::testing::HasSubstr("connections.refused reason=total_limit count=3"),
                            ::testing::HasSubstr("hint=")));
  counters_.refused_total_limit = 1000;
  EXPECT_EQ(Step(3s), "");
  // Another cause has a line of its own.
  counters_.refused_no_files = 1;
  EXPECT_THAT(Step(4s), ::testing::HasSubstr("reason=no_files count=1"));
  EXPECT_THAT(Step(12s), ::testing::HasSubstr("reason=total_limit count=997"));
  EXPECT_EQ(Step(30s), "");
}

TEST_F(WatchTest, TheHintIsOneThatHelpsIfOpenFilesBoundTheConnections) {
  ConnectionWatch lowered(log_, true);
  counters_.refused_total_limit = 1;
  lowered.Step(counters_, base::Instant::FromNanos(0));
  EXPECT_THAT(text_.str(), ::testing::HasSubstr("hint=\"raise `ulimit -n`"));
  EXPECT_THAT(text_.str(), ::testing::Not(::testing::HasSubstr("raise max_connections")));
}

TEST_F(WatchTest, SaysThatBuffersWereShed) {
  counters_.buffers_shed = 7;
  EXPECT_THAT(Step(1s), ::testing::HasSubstr("buffers.shed reason=buffer_budget count=7"));
}

TEST(ReturnedMemory, IsReturnedOncePerPeak) {
  ReturnedMemory returned;
  constexpr uint64_t kMib = uint64_t{1} << 20;
  for (const uint64_t bytes : {0 * kMib, 100 * kMib, 95 * kMib, 93 * kMib}) returned.Step(bytes, 0);
  EXPECT_EQ(returned.times(), 0u);
  returned.Step(50 * kMib, 0);
  EXPECT_EQ(returned.times(), 1u);
  returned.Step(45 * kMib, 0);
  EXPECT_EQ(returned.times(), 1u);
  returned.Step(0, 0);
  EXPECT_EQ(returned.times(), 2u);
  returned.Step(0, 0);
  EXPECT_EQ(returned.times(), 2u);
  // A peak between two calls.
  returned.Step(0, 1);
  EXPECT_EQ(returned.times(), 3u);
}

}  // namespace connection_watch_test
}  // namespace headgate::app
