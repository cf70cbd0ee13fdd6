// Runs every vector in tests/vectors through the scripts; see headgate/algorithm/vectors_test.cc.
#include <string>

#include <gtest/gtest.h>

#include "tests/redis/lua_store.h"
#include "tests/vectors/store_vectors.h"

namespace headgate::redis_host {
namespace lua_vectors_test {

class LuaVectors : public ::testing::TestWithParam<const char*> {};

TEST_P(LuaVectors, AreAnsweredExactly) {
  // Whether keys expire as soon as possible, or never.
  for (const base::Duration kept_least :
       {base::Duration(0), base::Duration(std::chrono::hours(24 * 40))}) {
    LuaStore store;
    store.context.kept_least = kept_least;
    vectors::ExpectAnswers(GetParam(), [&](size_t bucket, const vectors::StoreStep& step) {
      const std::string name = std::to_string(bucket);
      const base::Duration shift = vectors::ShiftOf(step.spec);
      const auto answer = store.Ask({.name = name,
                                     .limit = store.Intern(step.spec),
                                     .cost = step.cost,
                                     .operation = step.operation,
                                     .taken_at = step.taken_at + shift},
                                    step.now + shift);
      EXPECT_TRUE(answer.status.ok()) << answer.status;
      EXPECT_EQ(answer.decision.at, step.now + shift);
      return answer.decision;
    });
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, LuaVectors, ::testing::ValuesIn(vectors::kFiles),
                         [](const auto& test) { return std::string(test.param); });
INSTANTIATE_TEST_SUITE_P(OfCharges, LuaVectors, ::testing::Values(vectors::kCharges),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace lua_vectors_test
}  // namespace headgate::redis_host
