// The promises of every store, tested on a real server.
#include "headgate/testing/store_contract.h"

#include <gtest/gtest.h>

#include "tests/cas/waiting_store.h"
#include "tests/dynamodb/timed_strict_store.h"

namespace headgate::testing {
namespace store_contract_test {

std::unique_ptr<store::Store> Make() {
  return std::make_unique<strict_test::WaitingStore<dynamodb_test::TimedStrictStore>>();
}

INSTANTIATE_TEST_SUITE_P(DynamoDb, StoreContract,
                         ::testing::Values(StoreUnderTest{.name = "dynamodb",
                                                          .make = Make,
                                                          .steps_max = 200,
                                                          .tells_versions_apart = false,
                                                          .holds_on_to_time = false}));

}  // namespace store_contract_test
}  // namespace headgate::testing
