// Redis Cluster: a map from slots to primaries. The nodes are asked for it in turn; MOVED corrects
// it.
//
//   something is wrong ──(jitter, at most every 100 ms)──> CLUSTER SLOTS to the next node ──> map
//   MOVED ──────────────> this slot at once, the others as above
#pragma once

#include <array>

#include "headgate/base/random.h"
#include "headgate/store/redis/cluster_slots.h"
#include "headgate/store/redis/key_slot.h"
#include "headgate/store/redis/topology.h"

namespace headgate::store::redis {

class ClusterTopology final : public Topology {
 public:
  // `seeds` are the first nodes to ask.
  ClusterTopology(const std::vector<net::StreamTarget>& seeds, uint64_t seed);

  std::optional<uint32_t> Find(std::string_view key) const override;
  bool InUse(uint32_t server) const override { return server < in_use_.size() && in_use_[server]; }
  std::optional<uint32_t> OnRedirect(std::string_view error, uint32_t from, bool remember) override;
  void OnSuspicion(base::BootTime now) override;
  std::optional<Query> Ask(base::BootTime now) override;
  bool OnAnswer(const wire::RespValue& answer, base::BootTime now) override;
  void OnNoAnswer(base::BootTime now) override;
  base::BootTime wake_at() const override { return ask_at_; }

 private:
  static constexpr uint16_t kNobody = 0xffff;
  static_assert(kServersMax < kNobody);

  void CountInUse();
  base::Duration Upto(base::Duration most) {
    return base::Duration(static_cast<int64_t>(random_.Below(static_cast<uint64_t>(most.count()))));
  }

  const uint32_t seed_count_;
  base::Random random_;
  std::vector<uint16_t> owner_;  // by slot
  std::vector<bool> in_use_;     // by server
  base::BootTime ask_at_{0};
  base::BootTime asked_at_{INT64_MIN / 2};
  uint32_t asked_ = 0;  // the server that is or was asked last
};

}  // namespace headgate::store::redis
