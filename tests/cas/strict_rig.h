// A strict store in virtual time, for tests that run on every shared store.
#pragma once

#include "headgate/store/cas/cas_options.h"
#include "headgate/store/limit_table.h"
#include "headgate/testing/shared_store_rig.h"

namespace headgate::strict_test {

// Trusts the test's time, however far it goes back. A server's clock would not be trusted.
inline const store::cas::CasOptions kTrustsTheClock{.round = {.ahead_most = base::kDurationMax}};

template <typename TimedStore>
class StrictRig final : public testing::SharedStoreRig {
 public:
  explicit StrictRig(store::LimitTable& limits) : strict_(limits, kTrustsTheClock) {}

  store::SharedStore& store() override { return strict_.store(); }
  void SetNow(base::Instant now) override { strict_.SetNow(now); }
  bool Wait(const std::function<bool()>& answered) override { return strict_.Wait(answered); }

 private:
  TimedStore strict_;
};

}  // namespace headgate::strict_test
