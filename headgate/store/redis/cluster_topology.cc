#include "headgate/store/redis/cluster_topology.h"

#include <algorithm>

namespace headgate::store::redis {
namespace {

// The shortest interval between queries, however many failures there are.
constexpr base::Duration kClusterPauseMin = std::chrono::milliseconds(100);
// Added jitter, so that a fleet does not ask together.
constexpr base::Duration kClusterSpread = std::chrono::milliseconds(50);
// The interval of queries without any failure, because the topology may have changed unnoticed.
constexpr base::Duration kClusterInterval = std::chrono::seconds(30);

}  // namespace

ClusterTopology::ClusterTopology(const std::vector<net::StreamTarget>& seeds, uint64_t seed)
    : Topology(seeds),
      seed_count_(static_cast<uint32_t>(seeds.size())),
      random_(seed),
      owner_(kSlotCount, kNobody) {
  // Asking starts at a random seed, behind the one that counts as asked last.
  asked_ = static_cast<uint32_t>(random_.Below(seeds.size()));
}

std::optional<uint32_t> ClusterTopology::Find(std::string_view key) const {
  const uint16_t owner = owner_[KeySlot(key)];
  if (owner == kNobody) return std::nullopt;
  return owner;
}

void ClusterTopology::CountInUse() {
  in_use_.assign(servers().size(), false);
  for (const uint16_t owner : owner_) {
    if (owner != kNobody) in_use_[owner] = true;
  }
}

std::optional<uint32_t> ClusterTopology::OnRedirect(std::string_view error, uint32_t from,
                                                    bool remember) {
  const std::optional<Redirect> redirect = ParseRedirect(error, servers()[from].host);
  if (!redirect) return std::nullopt;
  const std::optional<uint32_t> server = IndexOf(redirect->target);
  if (server && remember) {
    owner_[redirect->slot] = static_cast<uint16_t>(*server);
    CountInUse();
  }
  return server;
}

void ClusterTopology::OnSuspicion(base::BootTime now) {
  ask_at_ = std::min(ask_at_, std::max(now, asked_at_ + kClusterPauseMin) + Upto(kClusterSpread));
}

// All nodes are asked in turn, so that a node that is cut off without knowing it cannot mislead for
// long.
std::optional<Topology::Query> ClusterTopology::Ask(base::BootTime now) {
  if (now < ask_at_) return std::nullopt;
  const auto count = static_cast<uint32_t>(servers().size());
  for (uint32_t i = 1; i <= count; ++i) {
    const uint32_t server = (asked_ + i) % count;
    if (server >= seed_count_ && !InUse(server)) continue;
    asked_ = server;
    break;
  }
  asked_at_ = now;
  ask_at_ = now + kClusterInterval + Upto(kClusterInterval / 4);
  return Query{.server = asked_, .words = {"CLUSTER", "SLOTS"}};
}

bool ClusterTopology::OnAnswer(const wire::RespValue& answer, base::BootTime now) {
  problem_.clear();
  const auto ranges = ParseClusterSlots(answer, servers()[asked_].host);
  if (!ranges.ok() || ranges->empty()) {
    problem_ = ranges.ok()
                   ? "it reports no slots: it has not joined a cluster, or no node serves them"
                   : std::string(ranges.status().message());
    OnNoAnswer(now);
    return false;
  }
  const std::vector<uint16_t> before = owner_;
  for (const SlotRange& range : *ranges) {
    const std::optional<uint32_t> server = IndexOf(range.primary);
    if (!server) continue;
    for (uint32_t slot = range.first; slot <= range.last; ++slot)
      owner_[slot] = static_cast<uint16_t>(*server);
  }
  CountInUse();
  return owner_ != before;
}

void ClusterTopology::OnNoAnswer(base::BootTime now) { OnSuspicion(now); }

}  // namespace headgate::store::redis
