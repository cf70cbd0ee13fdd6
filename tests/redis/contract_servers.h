// Redis servers of each topology for the contract suites. Each function empties its servers and
// returns the options to connect to them. The servers run until the test process ends.
#pragma once

#include <initializer_list>

#include <fmt/format.h>

#include "headgate/store/redis/client.h"
#include "tests/redis/client_fixture.h"
#include "tests/redis/redis_cluster.h"
#include "tests/redis/redis_process.h"

namespace headgate::redis_test {

inline store::redis::RedisOptions Emptied(store::redis::TopologyKind topology,
                                          std::initializer_list<RedisProcess*> servers) {
  store::redis::RedisOptions options = TestClient::Single(0);
  options.topology = topology;
  options.timeout = 5s;
  options.servers.clear();
  for (RedisProcess* server : servers) {
    server->Ask("FLUSHALL");
    options.servers.push_back({.host = "127.0.0.1", .port = server->port()});
  }
  return options;
}

inline store::redis::RedisOptions SingleServer() {
  static RedisProcess server;
  return Emptied(store::redis::TopologyKind::kSingle, {&server});
}

inline store::redis::RedisOptions RingOfThree() {
  static RedisProcess first, second, third;
  return Emptied(store::redis::TopologyKind::kRing, {&first, &second, &third});
}

inline store::redis::RedisOptions ClusterOfThree() {
  static RedisCluster cluster(RedisCluster::Replicas::kNone);
  return Emptied(store::redis::TopologyKind::kCluster,
                 {&cluster.Node(0), &cluster.Node(1), &cluster.Node(2)});
}

inline store::redis::RedisOptions BehindASentinel() {
  static RedisProcess primary;
  static RedisProcess sentinel = RedisProcess::Sentinel(fmt::format(
      "sentinel monitor main 127.0.0.1 {} 1\nsentinel down-after-milliseconds main 30000\n",
      primary.port()));
  store::redis::RedisOptions options = Emptied(store::redis::TopologyKind::kSentinel, {&primary});
  options.servers = {{.host = "127.0.0.1", .port = sentinel.port()}};
  options.master_name = "main";
  return options;
}

}  // namespace headgate::redis_test
