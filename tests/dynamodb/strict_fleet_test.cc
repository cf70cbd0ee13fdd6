// Several instances with strict buckets in a real server of DynamoDB, through its faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/store/dynamodb/dynamodb_backend.h"
#include "tests/cas/strict_fleet.h"
#include "tests/dynamodb/dynalite_process.h"

namespace headgate::dynamodb_test {
namespace strict_fleet_test {

using namespace std::chrono_literals;
using algorithm::Algorithm;
using store::SharedAnswer;
using strict_test::Load;

class Fleet : public strict_test::Fleet {
 public:
  Fleet(const DynaliteProcess& server, size_t count, base::Duration timeout = 2s)
      : strict_test::Fleet(
            store::dynamodb::OpenBackend,
            {.url = server.url("limits"),
             .calls = {.timeout = timeout, .connect_timeout = 1s, .connections_per_server = 8}},
            count) {}
};

class StrictFleet : public ::testing::Test {
 protected:
  StrictFleet() { server_.MakeTable("limits"); }

  DynaliteProcess server_;
};

TEST_F(StrictFleet, AdmitsWhatOneBucketAdmits) {
  Fleet fleet(server_, 3);
  for (const Algorithm algorithm :
       {Algorithm::kTokenBucket, Algorithm::kFixedWindow, Algorithm::kSlidingWindowLog}) {
    const store::LimitHandle limit = fleet.Limit(
        {.algorithm = algorithm, .requests = 10, .period = std::chrono::hours(24 * 365)});
    int allowed = 0, answered = 0;
    for (size_t i = 0; i < 60; ++i) {
      fleet.instances[i % 3]->store(0).Ask(
          {.name = std::string("hg:{") + std::string(algorithm::Name(algorithm)) + "}",
           .limit = limit},
          [&](const SharedAnswer& answer) {
            EXPECT_TRUE(answer.status.ok()) << answer.status;
            allowed += answer.decision.allowed;
            ++answered;
          });
    }
    ASSERT_TRUE(fleet.Until([&] { return answered == 60; }));
    EXPECT_EQ(allowed, 10) << algorithm::Name(algorithm);
  }
}

TEST_F(StrictFleet, AServerThatWasSilentForAMomentIsUsedAgain) {
  Fleet fleet(server_, 3, 200ms);
  Load load(fleet);
  ASSERT_TRUE(load.Until(200));
  for (int i = 0; i < 3; ++i) {
    const size_t failed = load.failed();
    server_.Freeze();
    ASSERT_TRUE(fleet.Until([&] { return load.failed() > failed + 5; }));
    server_.Thaw();
    ASSERT_TRUE(load.Until(load.answered() + 100));
  }
  load.Check();
}

TEST_F(StrictFleet, CountsItsInstancesAndLeaves) {
  Fleet fleet(server_, 3);
  ASSERT_TRUE(fleet.Until([&] { return fleet.instances[2]->instances() == 3; }));
  bool left = false;
  fleet.instances[2]->Leave([&] { left = true; });
  ASSERT_TRUE(fleet.Until([&] { return left; }));
  EXPECT_TRUE(fleet.Until([&] { return fleet.instances[0]->store(0).instances() == 2; }));
  for (const auto& instance : fleet.instances) EXPECT_TRUE(instance->problem().ok());
}

TEST_F(StrictFleet, CountsItsCalls) {
  Fleet fleet(server_, 1);
  ASSERT_TRUE(fleet.Until([&] { return fleet.instances[0]->problem().ok(); }));
  const uint64_t before = fleet.instances[0]->counters().calls_answered;
  const store::LimitHandle limit = fleet.Limit({.requests = 5, .period = std::chrono::hours(1)});
  for (int i = 0; i < 7; ++i)
    EXPECT_EQ(fleet.Ask(0, {.name = "hg:{k}", .limit = limit}).decision.allowed, i < 5);
  // A read, five writes, and a read for each denial.
  EXPECT_EQ(fleet.instances[0]->counters().calls_answered, before + 8);
}

TEST(StrictFleetWithoutATable, SaysSoUntilThereIsOne) {
  DynaliteProcess server;
  Fleet fleet(server, 1);
  ASSERT_TRUE(fleet.Until([&] {
    return fleet.instances[0]->problem().message().find("there is no table limits") !=
           std::string::npos;
  }));
  server.MakeTable("limits");
  EXPECT_TRUE(fleet.Until([&] { return fleet.instances[0]->problem().ok(); }));
}

}  // namespace strict_fleet_test
}  // namespace headgate::dynamodb_test
