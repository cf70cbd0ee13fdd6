#include "headgate/shared_store/instance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <sstream>

#include "headgate/base/clock.h"

namespace headgate::shared_store {
namespace instance_test {

using ::testing::HasSubstr;

class InstanceWatchTest : public ::testing::Test {
 protected:
  std::string Step(uint32_t instances, std::string_view error = {}) {
    text_.str("");
    watch_.Step(instances, error);
    return text_.str();
  }

  base::SystemClock clock_;
  std::ostringstream text_;
  observe::Log log_{{}, clock_, std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)};
  InstanceWatch watch_{log_};
};

TEST_F(InstanceWatchTest, SaysEachChangeOfTheNumberOnce) {
  EXPECT_EQ(Step(0), "");
  EXPECT_THAT(Step(3), HasSubstr("instances.changed instances=3 before=0"));
  EXPECT_EQ(Step(3), "");
  EXPECT_THAT(Step(2), HasSubstr("instances.changed instances=2 before=3"));
}

TEST_F(InstanceWatchTest, SaysThatTheyCannotBeCounted) {
  EXPECT_THAT(Step(0, "no rights"), HasSubstr("instances.refused"));
  EXPECT_EQ(Step(0, "no rights"), "");
  EXPECT_THAT(Step(0), HasSubstr("instances.accepted"));
}

TEST(InstanceName, IsAnotherForEachProcess) {
  EXPECT_EQ(RandomInstanceName().size(), 32u);
  EXPECT_NE(RandomInstanceName(), RandomInstanceName());
}

}  // namespace instance_test
}  // namespace headgate::shared_store
