// The promises of every store, tested for each store that needs no server.
#include "headgate/testing/store_contract.h"

#include <gtest/gtest.h>

#include "headgate/store/memory.h"
#include "tests/vectors/store_vectors.h"

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

class MemoryVectors : public ::testing::TestWithParam<const char*> {};

// Through the store itself: no front offers charges and undos.
TEST_P(MemoryVectors, AreAnsweredExactly) {
  const std::unique_ptr<store::Store> store = Memory();
  vectors::ExpectAnswers(GetParam(), [&](size_t bucket, const vectors::StoreStep& step) {
    const store::LimitHandle limit = HandleOf(*store, step.spec);
    const store::TakeRequest request{
        .key = base::HashBytes(store->hash_secret(), base::KeyKind::kRaw, std::to_string(bucket)),
        .limit = limit.get(),
        .cost = step.cost,
        .operation = step.operation,
        .taken_at = step.taken_at};
    algorithm::Decision decision;
    store->Take({&request, 1}, {&decision, 1}, step.now);
    EXPECT_EQ(decision.at, step.now);
    return decision;
  });
}

INSTANTIATE_TEST_SUITE_P(OfCharges, MemoryVectors, ::testing::Values(vectors::kCharges));

}  // namespace store_contract_test
}  // namespace headgate::testing
