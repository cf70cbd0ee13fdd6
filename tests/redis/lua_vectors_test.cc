// Runs every vector in tests/vectors through the scripts; see headgate/algorithm/vectors_test.cc.
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/redis/lua_store.h"
#include "tests/vectors/vectors.h"

namespace headgate::redis_host {
namespace lua_vectors_test {

using algorithm::LimitSpec;
using base::Instant;
using nlohmann::json;

void RunCase(LuaStore& store, const std::string& name, const json& test, int* steps_run) {
  store.keyspace.Clear();
  LimitSpec spec = vectors::SpecOf(name, test.at("limit"));
  store::LimitHandle limit = store.Intern(spec);
  for (const json& step : test.at("steps")) {
    SCOPED_TRACE(fmt::format("{} {} step {}", name, test.at("limit").dump(), step.dump()));
    const Instant now = Instant::FromNanos(step.at("at_ns").get<int64_t>());
    if (step.contains("change")) {
      vectors::Apply(step["change"], spec);
      // In Redis, the next request carries a bucket over to its new limit. In a vector, the request
      // comes at the time of the change.
      limit = store.Intern(spec);
      ASSERT_TRUE(
          store.Ask({.name = "b", .limit = limit, .cost = uint64_t{1} << 40}, now).status.ok());
      continue;
    }
    const auto answer =
        store.Ask({.name = "b", .limit = limit, .cost = step.at("cost").get<uint64_t>()}, now);
    ASSERT_TRUE(answer.status.ok()) << answer.status;
    ASSERT_EQ(vectors::ToJson(answer.decision), vectors::ExpectedOf(step));
    ++*steps_run;
  }
}

class LuaVectors : public ::testing::TestWithParam<const char*> {};

TEST_P(LuaVectors, AreAnsweredExactly) {
  const json file = vectors::Read(GetParam());
  // Whether keys expire as soon as possible, or never.
  for (const base::Duration kept_least :
       {base::Duration(0), base::Duration(std::chrono::hours(24 * 40))}) {
    LuaStore store;
    store.context.kept_least = kept_least;
    int steps_run = 0;
    for (const json& test : file.at("cases")) {
      ASSERT_NO_FATAL_FAILURE(RunCase(store, vectors::AlgorithmOf(file, test), test, &steps_run));
    }
    EXPECT_GE(steps_run, 900);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, LuaVectors, ::testing::ValuesIn(vectors::kFiles),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace lua_vectors_test
}  // namespace headgate::redis_host
