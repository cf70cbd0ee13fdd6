// The promises of every store, tested on a real ZooKeeper.
#include "headgate/testing/store_contract.h"

#include <gtest/gtest.h>

#include "tests/cas/waiting_store.h"
#include "tests/zookeeper/timed_strict_store.h"

namespace headgate::testing {
namespace store_contract_test {

std::unique_ptr<store::Store> Make() {
  return std::make_unique<strict_test::WaitingStore<zookeeper_test::TimedStrictStore>>();
}

INSTANTIATE_TEST_SUITE_P(ZooKeeper, StoreContract,
                         ::testing::Values(StoreUnderTest{.name = "zookeeper",
                                                          .make = Make,
                                                          .steps_max = 200,
                                                          .tells_versions_apart = false,
                                                          .holds_on_to_time = false}));

}  // namespace store_contract_test
}  // namespace headgate::testing
