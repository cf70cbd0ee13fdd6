// The whole backend, with servers whose answers the test chooses.
#include "headgate/store/dynamodb/dynamodb_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "headgate/client/http/test_http_server.h"

namespace headgate::store::dynamodb {
namespace dynamodb_backend_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Sets the variables of the process, as a machine with a role has them.
class DynamoDbBackend : public ::testing::Test {
 protected:
  DynamoDbBackend() {
    for (const char* name :
         {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SHARED_CREDENTIALS_FILE", "HOME",
          "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
          "AWS_EC2_METADATA_DISABLED"})
      ::setenv(name, "", 1);
    ::setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", roles_.url().c_str(), 1);
  }
  void Open() {
    backend_ = *OpenBackend(
        {.url = "dynamodb://limits?region=eu-west-1&endpoint=" + dynamodb_.url(), .instances = 1},
        std::array{&loop_},
        {.limits = limits_,
         .clock = disciplined_,
         .instance = "one",
         .version = "1",
         .seed = 1,
         .listener_of = [this](uint32_t) {
           return StoreListener{.on_alarm = [this](const std::string&, const std::string& error) {
             alarms_.push_back(error);
           }};
         }});
  }

  std::atomic<bool> has_role_{true};
  client::http::HttpRig roles_{
      [this](const client::http::RigRequest& request) -> client::http::RigReply {
        if (!has_role_) return {.status = 503};
        if (request.method == "PUT") return {.body = "token"};
        if (request.target.ends_with("/")) return {.body = "gate"};
        return {.body = R"({"Code": "Success", "AccessKeyId": "ROLE", "SecretAccessKey": "s",)"
                        R"( "Token": "t", "Expiration": "2199-01-01T00:00:00Z"})"};
      }};
  client::http::HttpRig dynamodb_{
      [](const client::http::RigRequest&) { return client::http::RigReply{.body = "{}"}; }};
  base::SystemClock clock_;
  base::DisciplinedClock disciplined_{clock_};
  net::EventLoop loop_{clock_};
  LimitTable limits_;
  std::vector<std::string> alarms_;
  std::unique_ptr<Backend> backend_;
};

TEST_F(DynamoDbBackend, AStartWithARoleRaisesNoAlarm) {
  Open();
  EXPECT_FALSE(backend_->problem().ok());
  ASSERT_TRUE(loop_.RunUntil([&] { return backend_->problem().ok(); }, 20s));
  EXPECT_THAT(alarms_, IsEmpty());
}

TEST_F(DynamoDbBackend, ARoleThatCannotBeReadRaisesAnAlarm) {
  has_role_ = false;
  Open();
  EXPECT_THAT(alarms_, IsEmpty());
  ASSERT_TRUE(loop_.RunUntil([&] { return !alarms_.empty(); }, 20s));
  EXPECT_THAT(alarms_, ElementsAre(HasSubstr("the instance metadata service answered 503")));
}

TEST_F(DynamoDbBackend, AMachineWithoutCredentialsRaisesAnAlarmAtOnce) {
  ::setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
  Open();
  EXPECT_THAT(alarms_, ElementsAre(HasSubstr("no credentials for DynamoDB")));
}

}  // namespace dynamodb_backend_test
}  // namespace headgate::store::dynamodb
