#include "headgate/proxy/upstream/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <sstream>

#include "headgate/base/clock.h"

namespace headgate::proxy::upstream {
namespace health_test {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

class UpstreamHealthTest : public ::testing::Test {
 protected:
  // A loop has two addresses; this is the state of the first. Returns what is logged.
  std::string Report(size_t loop, AddressState first, base::Duration at = 0s) {
    text_.str("");
    const ProxyLoop::DescribedAddress all[] = {{.target = first_, .state = first},
                                               {.target = second_, .state = {}}};
    health_.Report(loop, all, base::Instant::FromNanos(0) + at);
    return text_.str();
  }

  const net::StreamTarget first_{.host = "10.0.0.7", .port = 9000};
  const net::StreamTarget second_{.host = "10.0.0.8", .port = 9000};
  base::SystemClock clock_;
  std::ostringstream text_;
  observe::Log log_{{}, clock_, std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)};
  Health health_{log_};
};

TEST_F(UpstreamHealthTest, SaysOnceThatAnAddressIsSetAsideAndWhenItReturns) {
  EXPECT_EQ(Report(0, {}), "");
  EXPECT_EQ(Report(1, {}), "");
  EXPECT_THAT(Report(0, {.aside = AsideBecause::kNoConnection}, 1s),
              AllOf(HasSubstr("upstream.set_aside"), HasSubstr("address=10.0.0.7:9000"),
                    HasSubstr("reason=\"no connection could be made several times in a row\""),
                    HasSubstr("effect="), HasSubstr("hint=")));
  EXPECT_EQ(Report(1, {.aside = AsideBecause::kTooSlow}, 2s), "");
  EXPECT_EQ(Report(0, {}, 3s), "") << "the other loop still has";
  EXPECT_THAT(Report(1, {}, 9s),
              AllOf(HasSubstr("upstream.returned"), HasSubstr("address=10.0.0.7:9000"),
                    HasSubstr("reason=\"it has answered a request\""), HasSubstr("for=8s")));
}

TEST_F(UpstreamHealthTest, SumsOverTheLoops) {
  Report(0, {.in_progress = 2, .aside = AsideBecause::kChecksFailed});
  Report(1, {.in_progress = 3, .aside = AsideBecause::kNot});
  const auto all = health_.addresses();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "10.0.0.7:9000");
  EXPECT_EQ(all[0].in_progress, 5u);
  EXPECT_EQ(all[0].loops_aside, 1u);
  EXPECT_EQ(all[0].reason, "it failed active checks");
  EXPECT_EQ(all[1].loops_aside, 0u);
}

// One for IPv6 of a service that has only IPv4.
TEST_F(UpstreamHealthTest, AnAddressThatHasNeverAcceptedIsShownButNotLogged) {
  EXPECT_EQ(Report(0, {.aside = AsideBecause::kNeverAccepted}), "");
  EXPECT_EQ(health_.addresses()[0].loops_aside, 1u);
  EXPECT_EQ(Report(0, {}), "");
}

TEST_F(UpstreamHealthTest, ForgetsAddressesThatNoLoopHas) {
  Report(0, {.aside = AsideBecause::kBroken});
  Report(1, {});
  health_.Report(0, {}, base::Instant::FromNanos(0));
  EXPECT_EQ(health_.addresses().size(), 2u);
  health_.Report(1, {}, base::Instant::FromNanos(0));
  EXPECT_TRUE(health_.addresses().empty());
}

}  // namespace health_test
}  // namespace headgate::proxy::upstream
