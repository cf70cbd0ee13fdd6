// The promises of every store, tested for each store that needs no server.
#include "headgate/testing/store_contract.h"

#include <gtest/gtest.h>

#include "headgate/store/memory.h"

namespace headgate::testing {
namespace store_contract_test {

std::unique_ptr<store::Store> Memory() {
  return std::make_unique<store::MemoryStore>(
      store::MemoryOptions{.max_buckets = 1 << 14, .max_limits = 1 << 12});
}
uint64_t BucketsOf(store::Store& store) {
  return dynamic_cast<store::MemoryStore&>(store).stats().buckets;
}

INSTANTIATE_TEST_SUITE_P(Memory, StoreContract,
                         ::testing::Values(StoreUnderTest{"memory", Memory, BucketsOf}));

}  // namespace store_contract_test
}  // namespace headgate::testing
