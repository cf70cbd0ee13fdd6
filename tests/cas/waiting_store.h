// For tests: a strict store as a store that answers in the same call, through all layers above it:
// the shared decider, the compare-and-set store and the adapter. In virtual time.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <vector>

#include "headgate/base/hash_rig.h"
#include "headgate/limiter/shared/shared_decider.h"
#include "headgate/store/memory.h"

namespace headgate::strict_test {

// Waits for the decisions of the shared decider, one group after the other.
template <typename TimedStore>
class WaitingStore final : public store::Store {
 public:
  void Take(base::Strided<const store::TakeRequest> requests,
            base::Strided<algorithm::Decision> decisions, base::Instant now) override {
    std::lock_guard lock(mutex_);  // one loop, one thread at a time
    strict_.SetNow(now);
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
    EXPECT_TRUE(decided || strict_.Wait([&] { return ready; }));
    for (size_t i = 0; i < requests.size(); ++i) {
      const limiter::Settled& settled = decided ? batch[i].settled : pending.settled()[i];
      EXPECT_EQ(settled.mode, limiter::Mode::kExact);
      decisions[i] = settled.decision;
    }
  }

  std::mutex mutex_;
  store::MemoryStore local_{
      {.max_buckets = 1 << 10, .max_limits = 1 << 12, .secret = base::SecretFromSeed(1)}};
  TimedStore strict_{local_.limits()};
  limiter::shared::SharedDecider fleet_{
      strict_.store(), local_, {.timeout = std::chrono::seconds(5)}};
};

}  // namespace headgate::strict_test
