// Every vector in tests/vectors through the scripts, without one difference; see headgate/algorithm/vectors_test.cc.
#include <cstdint>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/redis/lua_store.h"

namespace headgate::redis_host {
namespace {

using algorithm::Align;
using algorithm::Decision;
using algorithm::LimitSpec;
using base::Duration;
using base::Instant;
using nlohmann::json;

json ReadVectors(const std::string& file) {
  std::ifstream in(std::filesystem::path(HEADGATE_SOURCE_DIR) / "tests/vectors" / file);
  return json::parse(in);
}

LimitSpec SpecOf(const std::string& name, const json& limit) {
  LimitSpec spec{.algorithm = *algorithm::AlgorithmByName(name == "fixed_window_first_hit" ? "fixed_window" : name),
                 .requests = limit.at("requests").get<uint64_t>(),
                 .period = Duration(limit.at("period_ns").get<int64_t>()),
                 .align = limit.contains("align") ? Align::kFirstHit : Align::kEpoch};
  if (limit.contains("burst")) spec.burst = limit.at("burst").get<uint64_t>();
  return spec;
}

json ToJson(const Decision& decision) {
  return {{"allowed", decision.allowed},
          {"limit", decision.limit},
          {"remaining", decision.remaining},
          {"retry_after_ns", decision.never_fits() ? -1 : decision.retry_after.count()},
          {"reset_after_ns", decision.reset_after.count()},
          {"wait_ns", decision.wait.count()}};
}

void RunCase(LuaStore& store, const std::string& name, const json& test, int* steps_run) {
  store.keyspace.Clear();
  LimitSpec spec = SpecOf(name, test.at("limit"));
  store::LimitHandle limit = store.Intern(spec);
  for (const json& step : test.at("steps")) {
    SCOPED_TRACE(fmt::format("{} {} step {}", name, test.at("limit").dump(), step.dump()));
    const Instant now = Instant::FromNanos(step.at("at_ns").get<int64_t>());
    if (step.contains("change")) {
      spec.requests = step["change"].at("requests").get<uint64_t>();
      if (step["change"].contains("burst")) spec.burst = step["change"]["burst"].get<uint64_t>();
      // A bucket in Redis is carried over by the next request; this one is at the time of the change.
      limit = store.Intern(spec);
      ASSERT_TRUE(store.Ask({.name = "b", .limit = limit, .cost = uint64_t{1} << 40}, now).status.ok());
      continue;
    }
    json expected = step;
    expected.erase("at_ns");
    expected.erase("cost");
    const auto answer = store.Ask({.name = "b", .limit = limit, .cost = step.at("cost").get<uint64_t>()}, now);
    ASSERT_TRUE(answer.status.ok()) << answer.status;
    ASSERT_EQ(ToJson(answer.decision), expected);
    ++*steps_run;
  }
}

class LuaVectors : public ::testing::TestWithParam<const char*> {};

TEST_P(LuaVectors, AreAnsweredWithoutOneDifference) {
  const json vectors = ReadVectors(GetParam() + std::string(".json"));
  LuaStore store;
  // A bucket that is full again is full under its next limit too, once it is forgotten; here none is.
  store.context.kept_least = std::chrono::hours(24 * 40);
  int steps_run = 0;
  for (const json& test : vectors.at("cases")) {
    const auto algorithm = test.contains("algorithm") ? test["algorithm"] : vectors.at("algorithm");
    ASSERT_NO_FATAL_FAILURE(RunCase(store, algorithm.get<std::string>(), test, &steps_run));
  }
  EXPECT_GE(steps_run, 900);
}

INSTANTIATE_TEST_SUITE_P(Of, LuaVectors,
                         ::testing::Values("token_bucket", "leaky_bucket", "leaky_bucket_queue", "fixed_window",
                                           "fixed_window_first_hit", "sliding_window_counter", "sliding_window_log",
                                           "changes"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace headgate::redis_host
