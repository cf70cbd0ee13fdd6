// For tests: a real cluster of primaries, with or without a replica each, formed in seconds.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/redis/redis_process.h"

namespace headgate::redis_test {

using namespace std::chrono_literals;

class RedisCluster {
 public:
  static constexpr size_t kPrimaries = 3;
  enum class Replicas { kNone, kOneEach };

  explicit RedisCluster(Replicas replicas) {
    using ::testing::HasSubstr;
    const size_t count = replicas == Replicas::kNone ? kPrimaries : 2 * kPrimaries;
    for (size_t i = 0; i < count; ++i) {
      nodes_.emplace_back(RedisProcess::Arguments{
          "--cluster-enabled", "yes", "--cluster-node-timeout", "1000",
          "--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0"});
    }
    for (size_t i = 0; i < kPrimaries; ++i) {
      const size_t first = i * 5462;
      EXPECT_THAT(Node(i).Ask(fmt::format("CLUSTER ADDSLOTSRANGE {} {}", first,
                                          std::min<size_t>(first + 5461, 16383))),
                  HasSubstr("OK"));
      EXPECT_THAT(Node(i).Ask(fmt::format("CLUSTER SET-CONFIG-EPOCH {}", i + 1)), HasSubstr("OK"));
    }
    for (size_t i = 1; i < count; ++i)
      Node(0).Ask(fmt::format("CLUSTER MEET 127.0.0.1 {}", Node(i).port()));
    const std::string known = fmt::format("cluster_known_nodes:{}", count);
    for (size_t i = 0; i < count; ++i) WaitFor(i, "CLUSTER INFO", known);
    for (size_t i = kPrimaries; i < count; ++i)
      WaitFor(i, "CLUSTER REPLICATE " + IdOf(i - kPrimaries), "OK");
    for (size_t i = kPrimaries; i < count; ++i)
      WaitFor(i, "INFO replication", "master_link_status:up");
    WaitUntilWell();
  }

  RedisProcess& Node(size_t i) { return nodes_[i]; }
  std::string IdOf(size_t i) {
    const std::string answer = Node(i).Ask("CLUSTER MYID");
    return answer.substr(answer.find('\n') + 1, 40);
  }
  // Every node reports that all slots are served.
  void WaitUntilWell() {
    for (size_t i = 0; i < nodes_.size(); ++i) WaitFor(i, "CLUSTER INFO", "cluster_state:ok");
  }
  static void Wait(const std::function<bool()>& condition) {
    const base::SystemClock clock;
    const base::BootTime deadline = clock.BootNow() + 30s;
    while (!condition()) {
      ASSERT_LT(clock.BootNow(), deadline);
      std::this_thread::yield();
    }
  }

 private:
  void WaitFor(size_t node, const std::string& command, std::string_view answer) {
    Wait([&] { return Node(node).Ask(command).find(answer) != std::string::npos; });
  }

  std::vector<RedisProcess> nodes_;
};

}  // namespace headgate::redis_test
