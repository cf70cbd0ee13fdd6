// The scripts in this process as a SharedStore: answers in the same call, by the time that its
// owner says.
#pragma once

#include "headgate/store/shared_store.h"
#include "tests/redis/lua_store.h"

namespace headgate::redis_host {

class LuaSharedStore final : public store::SharedStore {
 public:
  // `limits` is the table that requests take their limits from.
  LuaSharedStore(store::LimitTable& limits, const base::Instant& now) : limits_(limits), now_(now) {
    // The owner's time is no server's clock that is to be mistrusted, however far it goes back.
    store_.context.ahead_most = base::kDurationMax;
  }

  void Ask(const store::SharedRequest& request, Done done) override {
    done(store_.Ask(request, now_));
  }
  // Moves with the time of decisions.
  base::BootTime Now() const override { return base::BootTime{now_.ns}; }
  uint32_t instances() const override { return 1; }
  store::LimitTable& limits() override { return limits_; }

 private:
  LuaStore store_;
  store::LimitTable& limits_;
  const base::Instant& now_;
};

}  // namespace headgate::redis_host
