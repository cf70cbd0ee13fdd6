// Redis Sentinel: one primary has all keys, and sentinels know which server it is. They are asked
// every second, and also at once when something goes wrong; then another sentinel is asked than
// before. The connection verifies that the server they name is a primary (see Connection).
#pragma once

#include "headgate/base/random.h"
#include "headgate/store/redis/topology.h"

namespace headgate::store::redis {

class SentinelTopology final : public Topology {
 public:
  SentinelTopology(const std::vector<net::StreamTarget>& sentinels, std::string master_name,
                   uint64_t seed);

  std::optional<uint32_t> Find(std::string_view) const override { return master_; }
  bool InUse(uint32_t server) const override { return server == master_; }
  bool IsSentinel(uint32_t server) const override { return server < sentinel_count_; }
  void OnSuspicion(base::BootTime now) override;
  std::optional<Query> Ask(base::BootTime now) override;
  bool OnAnswer(const wire::RespValue& answer, base::BootTime now) override;
  void OnNoAnswer(base::BootTime now) override;
  base::BootTime wake_at() const override { return ask_at_; }

 private:
  const uint32_t sentinel_count_;
  const std::string master_name_;
  base::Random random_;
  std::optional<uint32_t> master_;
  base::BootTime ask_at_{0};
  base::BootTime asked_at_{INT64_MIN / 2};
  uint32_t asked_;
  bool suspected_ = true;  // since the last query
};

}  // namespace headgate::store::redis
