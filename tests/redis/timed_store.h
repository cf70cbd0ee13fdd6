// A shared store on real servers that decides by a time set by the test, as the contract suites
// need, instead of by the server's clock.
#pragma once

#include <utility>

#include "headgate/store/redis/bucket_caller.h"
#include "headgate/store/shared_store.h"

namespace headgate::redis_test {

class TimedStore final : public store::SharedStore {
 public:
  // The client, the limits and `now` must outlive the store.
  TimedStore(store::redis::Client& client, store::LimitTable& limits, const base::Instant& now)
      : client_(client), limits_(limits), now_(now), caller_(client, {}) {}

  void Ask(const store::SharedRequest& request, Done done) override {
    // The server does not know the time of the test, so it keeps keys for long.
    caller_.Ask(request, {.now = now_, .kept_least = std::chrono::hours(1)}, std::move(done));
  }
  base::BootTime Now() const override { return client_.loop().Now(); }
  uint32_t instances() const override { return 1; }
  store::LimitTable& limits() override { return limits_; }

 private:
  store::redis::Client& client_;
  store::LimitTable& limits_;
  const base::Instant& now_;
  store::redis::BucketCaller caller_;
};

}  // namespace headgate::redis_test
