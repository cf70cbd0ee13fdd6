// The promises of every store, tested on a real Redis through all layers above it: the shared
// decider, the scripts and the client. Runs in virtual time.
#include <gtest/gtest.h>

#include <mutex>

#include "headgate/base/hash_rig.h"
#include "headgate/limiter/bucket_name.h"
#include "headgate/limiter/shared/shared_decider.h"
#include "headgate/store/memory.h"
#include "headgate/testing/store_contract.h"
#include "tests/redis/contract_servers.h"
#include "tests/redis/timed_store.h"

namespace headgate::testing {
namespace fleet_contract_test {

using redis_test::TestClient;

// Waits for the decisions of the shared decider. Requests that take more than one round trip
// (groups, and buckets whose limit has changed) are sent one by one, so that a batch is decided in
// order.
class WaitingStore final : public store::Store {
 public:
  explicit WaitingStore(const store::redis::RedisOptions& options) : test_(options) {}

  void Take(base::Strided<const store::TakeRequest> requests,
            base::Strided<algorithm::Decision> decisions, base::Instant now) override {
    std::lock_guard lock(mutex_);  // one loop, one thread at a time
    now_ = now;
    for (size_t i = 0; i < requests.size();) {
      size_t end = i + 1;
      if (IsGroup(requests, i)) {
        while (end < requests.size() && requests[end].joined != store::Joined::kNo) ++end;
      } else if (requests[i].history.empty()) {
        while (end < requests.size() && requests[end].history.empty() && !IsGroup(requests, end))
          ++end;
      }
      TakePart(requests.subspan(i, end - i), decisions.subspan(i, end - i), now);
      i = end;
    }
  }
  const base::HashSecret& hash_secret() const override { return local_.hash_secret(); }
  store::LimitTable& limits() override { return local_.limits(); }

 private:
  static bool IsGroup(base::Strided<const store::TakeRequest> requests, size_t i) {
    return i + 1 < requests.size() && requests[i + 1].joined != store::Joined::kNo;
  }

  void TakePart(base::Strided<const store::TakeRequest> requests,
                base::Strided<algorithm::Decision> decisions, base::Instant now) {
    std::vector<limiter::BatchEntry> batch;
    for (size_t i = 0; i < requests.size(); ++i) {
      batch.push_back({.request = requests[i], .terms = fleet_.default_terms()});
    }
    const auto name = [&](size_t index, std::string& out) {
      out = fmt::format("hg:{{{:016x}{:016x}}}", requests[index].key.high, requests[index].key.low);
    };
    bool ready = false;
    limiter::Pending pending([&] { ready = true; });
    const bool decided = fleet_.Decide(batch, name, &pending, now);
    EXPECT_TRUE(decided || test_.Until([&] { return ready; }));
    for (size_t i = 0; i < requests.size(); ++i) {
      const limiter::Settled& settled = decided ? batch[i].settled : pending.settled()[i];
      EXPECT_EQ(settled.mode, limiter::Mode::kExact);
      decisions[i] = settled.decision;
    }
  }

  static store::MemoryOptions Options() {
    return {.max_buckets = 1 << 10, .max_limits = 1 << 12, .secret = base::SecretFromSeed(1)};
  }

  std::mutex mutex_;
  base::Instant now_{0};
  store::MemoryStore local_{Options()};
  TestClient test_;
  redis_test::TimedStore store_{*test_.client, local_.limits(), now_};
  limiter::shared::SharedDecider fleet_{store_, local_, {.timeout = std::chrono::seconds(5)}};
};

StoreUnderTest Topology(std::string name, store::redis::RedisOptions (*servers)()) {
  return {.name = std::move(name),
          .make = [servers] { return std::make_unique<WaitingStore>(servers()); },
          .steps_max = 200,
          .tells_versions_apart = false,
          .holds_on_to_time = false};
}

INSTANTIATE_TEST_SUITE_P(Redis, StoreContract,
                         ::testing::Values(Topology("single", redis_test::SingleServer),
                                           Topology("ring", redis_test::RingOfThree),
                                           Topology("cluster", redis_test::ClusterOfThree),
                                           Topology("sentinel", redis_test::BehindASentinel)));

}  // namespace fleet_contract_test
}  // namespace headgate::testing
