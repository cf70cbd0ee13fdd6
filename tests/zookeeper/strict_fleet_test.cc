// Several instances with strict buckets in a real ZooKeeper, through its faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/store/zookeeper/zookeeper_backend.h"
#include "tests/cas/strict_fleet.h"
#include "tests/zookeeper/zookeeper_process.h"

namespace headgate::zookeeper_test {
namespace strict_fleet_test {

using namespace std::chrono_literals;
using algorithm::Algorithm;
using store::SharedAnswer;
using strict_test::Load;

class Fleet : public strict_test::Fleet {
 public:
  Fleet(const std::string& servers, size_t count, base::Duration timeout = 2s)
      : strict_test::Fleet(store::zookeeper::OpenBackend,
                           {.url = "zk://" + servers + "/r", .calls = {.timeout = timeout}},
                           count) {}
};

TEST(StrictFleet, AdmitsWhatOneBucketAdmits) {
  ZooKeeperProcess server;
  Fleet fleet(server.server(), 3);
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

TEST(StrictFleet, AdmitsWhatOneBucketAdmitsUnderLocks) {
  ZooKeeperProcess server;
  Fleet fleet(server.server(), 3);
  const store::LimitHandle limit =
      fleet.Limit({.requests = 10, .period = std::chrono::hours(24 * 365)});
  int allowed = 0, answered = 0;
  const auto ask = [&](size_t i) {
    fleet.instances[i % 3]->store(0).Ask({.name = "hg:{k}", .limit = limit, .locked = true},
                                         [&](const SharedAnswer& answer) {
                                           EXPECT_TRUE(answer.status.ok()) << answer.status;
                                           allowed += answer.decision.allowed;
                                           ++answered;
                                         });
  };
  for (size_t i = 0; i < 30; ++i) ask(i);
  ASSERT_TRUE(fleet.Until([&] { return answered == 30; }));
  EXPECT_EQ(allowed, 10);
  uint64_t taken = 0;
  for (const auto& instance : fleet.instances) {
    const store::StoreCounters counters = instance->counters();
    taken += counters.locks_taken;
    EXPECT_EQ(counters.retries, 0u) << "one writes at a time";
    EXPECT_EQ(counters.locks_timed_out, 0u);
  }
  EXPECT_EQ(taken, 3u) << "all requests of an instance are decided under one lock";
}

TEST(StrictFleet, IsOneBucketUnderLocksThroughRestartsOfTheServer) {
  ZooKeeperProcess server;
  Fleet fleet(server.server(), 3);
  Load load(fleet, /*locked=*/true);
  ASSERT_TRUE(load.Until(200));
  for (int i = 0; i < 2; ++i) {
    const size_t failed = load.failed();
    server.Kill();
    ASSERT_TRUE(fleet.Until([&] { return load.failed() > failed + 10; }));
    server.Start();
    ASSERT_TRUE(load.Until(load.answered() + 200));
  }
  load.Check();
}

TEST(StrictFleet, LosesNothingUnderLocksWithTheLeaderOfAnEnsemble) {
  Ensemble ensemble;
  Fleet fleet(ensemble.servers(), 3);
  Load load(fleet, /*locked=*/true);
  ASSERT_TRUE(load.Until(200));
  for (size_t i = 0; i < ensemble.size(); ++i) {
    ensemble.server(i).Kill();
    ASSERT_TRUE(load.Until(load.answered() + 70));
    ensemble.server(i).Begin();
    ASSERT_TRUE(fleet.Until([&] { return ensemble.server(i).IsServing(); }));
  }
  load.Check();
}

TEST(StrictFleet, GoesOnWithWhatWasConsumedAfterARestartOfTheServer) {
  ZooKeeperProcess server;
  Fleet fleet(server.server(), 3);
  Load load(fleet);
  ASSERT_TRUE(load.Until(200));
  for (int i = 0; i < 2; ++i) {
    const size_t failed = load.failed();
    server.Kill();
    ASSERT_TRUE(fleet.Until([&] { return load.failed() > failed + 10; }));
    server.Start();
    ASSERT_TRUE(load.Until(load.answered() + 200));
  }
  load.Check();
}

TEST(StrictFleet, AServerThatWasSilentForAMomentIsUsedAgain) {
  ZooKeeperProcess server;
  Fleet fleet(server.server(), 3, 200ms);
  Load load(fleet);
  ASSERT_TRUE(load.Until(200));
  for (int i = 0; i < 3; ++i) {
    const size_t failed = load.failed();
    server.Freeze();
    ASSERT_TRUE(fleet.Until([&] { return load.failed() > failed + 5; }));
    server.Thaw();
    ASSERT_TRUE(load.Until(load.answered() + 100));
  }
  load.Check();
}

TEST(StrictFleet, LosesNothingWithTheLeaderOfAnEnsemble) {
  Ensemble ensemble;
  Fleet fleet(ensemble.servers(), 3);
  Load load(fleet);
  ASSERT_TRUE(load.Until(200));
  // One of them is the leader.
  for (size_t i = 0; i < ensemble.size(); ++i) {
    ensemble.server(i).Kill();
    ASSERT_TRUE(load.Until(load.answered() + 100));
    ensemble.server(i).Begin();
    ASSERT_TRUE(fleet.Until([&] { return ensemble.server(i).IsServing(); }));
  }
  load.Check();
}

TEST(StrictFleet, CountsItsInstancesAndLeaves) {
  ZooKeeperProcess server;
  Fleet fleet(server.server(), 3);
  ASSERT_TRUE(fleet.Until([&] { return fleet.instances[0]->instances() == 3; }));
  bool left = false;
  fleet.instances[2]->Leave([&] { left = true; });
  ASSERT_TRUE(fleet.Until([&] { return left; }));
  EXPECT_TRUE(fleet.Until([&] { return fleet.instances[0]->store(0).instances() == 2; }));
  EXPECT_TRUE(absl::IsUnavailable(
      fleet.Ask(2, {.name = "hg:{k}", .limit = fleet.Limit({.requests = 1, .period = 1s})})
          .status));
}

TEST(StrictFleet, CountsItsCalls) {
  ZooKeeperProcess server;
  Fleet fleet(server.server(), 1);
  const store::LimitHandle limit = fleet.Limit({.requests = 5, .period = std::chrono::hours(1)});
  for (int i = 0; i < 7; ++i)
    EXPECT_EQ(fleet.Ask(0, {.name = "hg:{k}", .limit = limit}).decision.allowed, i < 5);
  store::StoreCounters counters = fleet.instances[0]->counters();
  // A read, five writes, and a read for each denial.
  EXPECT_EQ(counters.calls_answered, 8u);
  EXPECT_EQ(counters.disconnects, 0u);
  server.Kill();
  ASSERT_TRUE(fleet.Until([&] { return fleet.disconnected == 1; }));
  EXPECT_TRUE(absl::IsUnavailable(fleet.Ask(0, {.name = "hg:{k}", .limit = limit}).status));
  counters = fleet.instances[0]->counters();
  EXPECT_EQ(counters.calls_unavailable, 1u);
  EXPECT_EQ(counters.disconnects, 1u);
}

}  // namespace strict_fleet_test
}  // namespace headgate::zookeeper_test
