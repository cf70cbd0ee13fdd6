// The promises of leases, tested on the compare-and-set store in virtual time.
#include "headgate/testing/lease_contract.h"

#include <gtest/gtest.h>

#include "tests/cas/timed_cas_store.h"

namespace headgate::testing {
namespace lease_contract_test {

class CasRig final : public SharedStoreRig {
 public:
  store::SharedStore& store() override { return cas_.store(); }
  void SetNow(base::Instant now) override { cas_.SetNow(now); }
  bool Wait(const std::function<bool()>& answered) override { return cas_.Wait(answered); }

 private:
  store::LimitTable limits_;
  cas_test::TimedCasStore cas_{limits_};
};

INSTANTIATE_TEST_SUITE_P(Cas, LeaseContract,
                         ::testing::Values(SharedStoreUnderTest{
                             .name = "cas", .make = [] { return std::make_unique<CasRig>(); }}));

}  // namespace lease_contract_test
}  // namespace headgate::testing
