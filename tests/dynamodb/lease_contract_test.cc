// The promises of leases, tested on a real server in virtual time.
#include "headgate/testing/lease_contract.h"

#include <gtest/gtest.h>

#include "tests/dynamodb/timed_strict_store.h"

namespace headgate::testing {
namespace lease_contract_test {

class DynamoDbRig final : public SharedStoreRig {
 public:
  store::SharedStore& store() override { return strict_.store(); }
  void SetNow(base::Instant now) override { strict_.SetNow(now); }
  bool Wait(const std::function<bool()>& answered) override { return strict_.Wait(answered); }

 private:
  store::LimitTable limits_;
  dynamodb_test::TimedStrictStore strict_{limits_};
};

INSTANTIATE_TEST_SUITE_P(
    DynamoDb, LeaseContract,
    ::testing::Values(SharedStoreUnderTest{
        .name = "dynamodb", .make = [] { return std::make_unique<DynamoDbRig>(); }, .steps = 200}));

}  // namespace lease_contract_test
}  // namespace headgate::testing
