// Every vector in tests/vectors, without one difference. They were computed by a model that shares no code with this
// project (tests/vectors/README.md).
#include <cstdint>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "headgate/algorithm/decide.h"
#include "headgate/testing/deque_hit_log.h"

namespace headgate::algorithm {
namespace {

using base::Duration;
using base::Instant;
using nlohmann::json;

json ReadVectors(const std::string& file) {
  std::ifstream in(std::filesystem::path(HEADGATE_SOURCE_DIR) / "tests/vectors" / file);
  return json::parse(in);
}

LimitSpec SpecOf(const std::string& algorithm, const json& limit) {
  const bool first_hit = limit.contains("align");
  LimitSpec spec{.algorithm = *AlgorithmByName(algorithm == "fixed_window_first_hit" ? "fixed_window" : algorithm),
                 .requests = limit.at("requests").get<uint64_t>(),
                 .period = Duration(limit.at("period_ns").get<int64_t>()),
                 .align = first_hit ? Align::kFirstHit : Align::kEpoch};
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

// Runs one case; `steps_run` counts its decisions.
void RunCase(const std::string& algorithm, const json& test, int* steps_run) {
  LimitSpec spec = SpecOf(algorithm, test.at("limit"));
  Limit limit = *Limit::Make(spec);
  BucketState state;
  testing::DequeHitLog hits;
  for (const json& step : test.at("steps")) {
    SCOPED_TRACE(fmt::format("{} {} step {}", algorithm, test.at("limit").dump(), step.dump()));
    const Instant now = Instant::FromNanos(step.at("at_ns").get<int64_t>());
    if (step.contains("change")) {
      spec.requests = step["change"].at("requests").get<uint64_t>();
      if (step["change"].contains("burst")) spec.burst = step["change"]["burst"].get<uint64_t>();
      const Limit changed = *Limit::Make(spec);
      Change(limit, changed, state, hits, now);
      limit = changed;
      continue;
    }
    json expected = step;
    expected.erase("at_ns");
    expected.erase("cost");
    const json answered = ToJson(Decide(limit, state, hits, step.at("cost").get<Cost>(), now));
    ASSERT_EQ(answered, expected);
    ++*steps_run;
  }
}

class Vectors : public ::testing::TestWithParam<const char*> {};

TEST_P(Vectors, AreAnsweredWithoutOneDifference) {
  const json vectors = ReadVectors(GetParam() + std::string(".json"));
  int steps_run = 0;
  for (const json& test : vectors.at("cases")) {
    const auto algorithm = test.contains("algorithm") ? test["algorithm"] : vectors.at("algorithm");
    ASSERT_NO_FATAL_FAILURE(RunCase(algorithm.get<std::string>(), test, &steps_run));
  }
  EXPECT_GE(steps_run, 900);
}

INSTANTIATE_TEST_SUITE_P(Of, Vectors,
                         ::testing::Values("token_bucket", "leaky_bucket", "leaky_bucket_queue", "fixed_window",
                                           "fixed_window_first_hit", "sliding_window_counter", "sliding_window_log",
                                           "changes"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace headgate::algorithm
