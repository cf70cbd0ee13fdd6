// Runs the scripts in this process as a SharedStore that answers within the call, at the time set
// by its owner.
#pragma once

#include "headgate/store/shared_store.h"
#include "tests/redis/lua_store.h"

namespace headgate::redis_host {

class LuaSharedStore final : public store::SharedStore {
 public:
  // `limits` is the table of the limits in requests.
  LuaSharedStore(store::LimitTable& limits, const base::Instant& now) : limits_(limits), now_(now) {
    // Trusts the owner's time, however far it goes back. A server's clock would not be trusted.
    store_.context.ahead_most = base::kDurationMax;
  }

  void Ask(const store::SharedRequest& request, Done done) override {
    done(store_.Ask(request, now_));
  }
  // Advances with the time of decisions.
  base::BootTime Now() const override { return base::BootTime{now_.ns}; }
  uint32_t instances() const override { return 1; }
  store::LimitTable& limits() override { return limits_; }

 private:
  LuaStore store_;
  store::LimitTable& limits_;
  const base::Instant& now_;
};

}  // namespace headgate::redis_host
