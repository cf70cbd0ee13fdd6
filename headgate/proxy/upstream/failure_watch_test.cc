#include "headgate/proxy/upstream/failure_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <sstream>

#include "headgate/base/clock.h"

namespace headgate::proxy::upstream {
namespace failure_watch_test {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

class UpstreamWatchTest : public ::testing::Test {
 protected:
  std::string Step(base::Duration at) {
    text_.str("");
    watch_.Step(counts_, base::Instant::FromNanos(0) + at);
    return text_.str();
  }

  base::SystemClock clock_;
  std::ostringstream text_;
  observe::Log log_{{}, clock_, std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)};
  FailureWatch watch_{log_};
  FailureWatch::Counts counts_;
};

TEST_F(UpstreamWatchTest, SaysOnceThatNoConnectionCanBeMade) {
  counts_.answered = 7;
  EXPECT_EQ(Step(1s), "");
  watch_.OnConnectFailed("connection to 127.0.0.1:9: Connection refused");
  EXPECT_EQ(Step(2s), "") << "no request has failed, only a check";
  counts_.unreachable = 1;
  EXPECT_THAT(Step(3s),
              AllOf(HasSubstr("upstream.failed"),
                    HasSubstr("reason=\"connection to 127.0.0.1:9: Connection refused\""),
                    HasSubstr("effect=\"requests are answered 502 or 504\""), HasSubstr("hint=")));
  counts_.unreachable = 100;
  EXPECT_EQ(Step(4s), "");
}

TEST_F(UpstreamWatchTest, SaysWhenRequestsPassAgain) {
  counts_.unreachable = 1;
  Step(1s);
  counts_.unreachable = 3;
  Step(2s);
  counts_.answered = 1;
  EXPECT_EQ(Step(3s), "") << "it may fail again";
  counts_.answered = 2;
  EXPECT_THAT(
      Step(2s + observe::DegradedWatch::kQuiet),
      AllOf(HasSubstr("upstream.recovered"), HasSubstr("requests_failed=3"), HasSubstr("for=1s")));
  counts_.unreachable = 4;
  EXPECT_THAT(Step(10s), HasSubstr("upstream.failed"));
}

TEST_F(UpstreamWatchTest, SaysWhatElseFails) {
  counts_.broken = 1;
  EXPECT_THAT(Step(1s), HasSubstr("reason=\"a connection ended before the answer"));
  counts_.answered = 1;
  Step(1s + observe::DegradedWatch::kQuiet);
  counts_.too_slow = 1;
  EXPECT_THAT(Step(20s), HasSubstr("reason=\"an answer did not come in time\""));
}

}  // namespace failure_watch_test
}  // namespace headgate::proxy::upstream
