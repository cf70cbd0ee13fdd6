#include "headgate/store/redis/topology.h"

#include <algorithm>

#include "headgate/store/redis/cluster_topology.h"
#include "headgate/store/redis/ring.h"
#include "headgate/store/redis/sentinel_topology.h"

namespace headgate::store::redis {
namespace {

// One server has all keys.
class SingleTopology final : public Topology {
 public:
  using Topology::Topology;
  explicit SingleTopology(const RedisOptions& options) : Topology(options.servers) {}
  std::optional<uint32_t> Find(std::string_view) const override { return 0; }
  bool InUse(uint32_t) const override { return true; }
};

// Independent servers that do not know each other. A server that is down keeps its keys.
class RingTopology final : public Topology {
 public:
  explicit RingTopology(const RedisOptions& options)
      : Topology(options.servers), ring_(Names(options)) {}
  std::optional<uint32_t> Find(std::string_view key) const override { return ring_.Find(key); }
  bool InUse(uint32_t) const override { return true; }

 private:
  static std::vector<std::string> Names(const RedisOptions& options) {
    std::vector<std::string> names;
    for (const net::StreamTarget& server : options.servers) names.push_back(server.ToString());
    return names;
  }
  Ring ring_;
};

}  // namespace

std::optional<uint32_t> Topology::IndexOf(const net::StreamTarget& server) {
  const auto found = std::find(servers_.begin(), servers_.end(), server);
  if (found != servers_.end()) return static_cast<uint32_t>(found - servers_.begin());
  if (!free_.empty()) {
    const uint32_t index = free_.back();
    free_.pop_back();
    servers_[index] = server;
    return index;
  }
  if (servers_.size() >= kServersMax) return std::nullopt;
  servers_.push_back(server);
  return static_cast<uint32_t>(servers_.size() - 1);
}

bool Topology::Forget(uint32_t server) {
  if (server < configured_count_ || InUse(server)) return false;
  servers_[server] = {};
  free_.push_back(server);
  return true;
}

std::unique_ptr<Topology> MakeTopology(const RedisOptions& options, uint64_t seed) {
  switch (options.topology) {
    case TopologyKind::kSingle:
      break;
    case TopologyKind::kRing:
      return std::make_unique<RingTopology>(options);
    case TopologyKind::kCluster:
      return std::make_unique<ClusterTopology>(options.servers, seed);
    case TopologyKind::kSentinel:
      return std::make_unique<SentinelTopology>(options.servers, options.master_name, seed);
  }
  return std::make_unique<SingleTopology>(options);
}

}  // namespace headgate::store::redis
