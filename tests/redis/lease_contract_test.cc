// The promises of leases, tested on a real Redis through the client, in each topology. Runs in
// virtual time.
#include "headgate/testing/lease_contract.h"

#include <gtest/gtest.h>

#include "tests/redis/contract_servers.h"
#include "tests/redis/timed_store.h"

namespace headgate::testing {
namespace lease_contract_test {

class RedisRig final : public SharedStoreRig {
 public:
  explicit RedisRig(const store::redis::RedisOptions& options) : client_(options) {}

  store::SharedStore& store() override { return store_; }
  void SetNow(base::Instant now) override { now_ = now; }
  bool Wait(const std::function<bool()>& answered) override { return client_.Until(answered); }

 private:
  base::Instant now_{0};
  store::LimitTable limits_;
  redis_test::TestClient client_;
  redis_test::TimedStore store_{*client_.client, limits_, now_};
};

SharedStoreUnderTest Topology(std::string name, store::redis::RedisOptions (*servers)()) {
  return {.name = std::move(name),
          .make = [servers] { return std::make_unique<RedisRig>(servers()); }};
}

INSTANTIATE_TEST_SUITE_P(Redis, LeaseContract,
                         ::testing::Values(Topology("single", redis_test::SingleServer),
                                           Topology("ring", redis_test::RingOfThree),
                                           Topology("cluster", redis_test::ClusterOfThree),
                                           Topology("sentinel", redis_test::BehindASentinel)));

}  // namespace lease_contract_test
}  // namespace headgate::testing
