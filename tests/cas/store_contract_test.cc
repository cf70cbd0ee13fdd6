// The promises of every store, tested on the compare-and-set store through all layers above it. The
// service is in this process, and the time is virtual.
#include "headgate/testing/store_contract.h"

#include <gtest/gtest.h>

#include <mutex>

#include <fmt/format.h>

#include "headgate/base/hash_rig.h"
#include "headgate/limiter/shared/shared_decider.h"
#include "headgate/store/memory.h"
#include "tests/cas/timed_cas_store.h"

namespace headgate::testing {
namespace store_contract_test {

// Waits for the decisions of the shared decider, one group after the other.
class WaitingStore final : public store::Store {
 public:
  void Take(base::Strided<const store::TakeRequest> requests,
            base::Strided<algorithm::Decision> decisions, base::Instant now) override {
    std::lock_guard lock(mutex_);  // one loop, one thread at a time
    cas_.SetNow(now);
    for (size_t i = 0; i < requests.size();) {
      size_t end = i + 1;
      while (end < requests.size() && requests[end].joined != store::Joined::kNo) ++end;
      // Requests that are not joined travel together.
      if (end == i + 1) {
        while (end < requests.size() && requests[end].joined == store::Joined::kNo &&
               (end + 1 == requests.size() || requests[end + 1].joined == store::Joined::kNo))
          ++end;
      }
      TakePart(requests.subspan(i, end - i), decisions.subspan(i, end - i), now);
      i = end;
    }
  }
  const base::HashSecret& hash_secret() const override { return local_.hash_secret(); }
  store::LimitTable& limits() override { return local_.limits(); }
  uint64_t buckets() const { return cas_.buckets(); }

 private:
  void TakePart(base::Strided<const store::TakeRequest> requests,
                base::Strided<algorithm::Decision> decisions, base::Instant now) {
    std::vector<limiter::BatchEntry> batch;
    for (size_t i = 0; i < requests.size(); ++i)
      batch.push_back({.request = requests[i], .terms = fleet_.default_terms()});
    const auto name = [&](size_t index, std::string& out) {
      out = fmt::format("{:016x}{:016x}", requests[index].key.high, requests[index].key.low);
    };
    bool ready = false;
    limiter::Pending pending([&] { ready = true; });
    const bool decided = fleet_.Decide(batch, name, &pending, now);
    EXPECT_TRUE(decided || cas_.Wait([&] { return ready; }));
    for (size_t i = 0; i < requests.size(); ++i) {
      const limiter::Settled& settled = decided ? batch[i].settled : pending.settled()[i];
      EXPECT_EQ(settled.mode, limiter::Mode::kExact);
      decisions[i] = settled.decision;
    }
  }

  std::mutex mutex_;
  store::MemoryStore local_{
      {.max_buckets = 1 << 10, .max_limits = 1 << 12, .secret = base::SecretFromSeed(1)}};
  cas_test::TimedCasStore cas_{local_.limits()};
  limiter::shared::SharedDecider fleet_{cas_.store(), local_, {.timeout = std::chrono::seconds(5)}};
};

std::unique_ptr<store::Store> Make() { return std::make_unique<WaitingStore>(); }
uint64_t BucketsOf(store::Store& store) { return dynamic_cast<WaitingStore&>(store).buckets(); }

INSTANTIATE_TEST_SUITE_P(Cas, StoreContract,
                         ::testing::Values(StoreUnderTest{.name = "cas",
                                                          .make = Make,
                                                          .count_buckets = BucketsOf,
                                                          .steps_max = 400,
                                                          .tells_versions_apart = false,
                                                          .holds_on_to_time = false}));

}  // namespace store_contract_test
}  // namespace headgate::testing
