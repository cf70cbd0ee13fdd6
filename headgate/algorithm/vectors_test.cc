// Replays every vector in tests/vectors exactly. A model that shares no code with this project
// computed them (tests/vectors/README.md).
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "headgate/algorithm/decide.h"
#include "headgate/testing/deque_hit_log.h"
#include "tests/vectors/vectors.h"

namespace headgate::algorithm {
namespace vectors_test {

using base::Instant;
using nlohmann::json;

// Runs one case; `steps_run` counts its decisions.
void RunCase(const std::string& algorithm, const json& test, int* steps_run) {
  LimitSpec spec = vectors::SpecOf(algorithm, test.at("limit"));
  Limit limit = *Limit::Make(spec);
  BucketState state;
  RememberedUntil remembered_until{};
  testing::DequeHitLog hits;
  for (const json& step : test.at("steps")) {
    SCOPED_TRACE(fmt::format("{} {} step {}", algorithm, test.at("limit").dump(), step.dump()));
    const Instant now = Instant::FromNanos(step.at("at_ns").get<int64_t>());
    if (step.contains("change")) {
      vectors::Apply(step["change"], spec);
      const Limit changed = *Limit::Make(spec);
      Change(limit, changed, state, hits, remembered_until, now);
      limit = changed;
      continue;
    }
    const vectors::Act act = vectors::ActOf(step);
    Decision decision;
    if (act.kind == vectors::Act::Kind::kTake) {
      decision = Decide(limit, state, hits, act.cost, now);
    } else if (act.kind == vectors::Act::Kind::kCharge) {
      decision = Charge(limit, state, hits, act.cost, now);
    } else {
      decision = *Undo(limit, state, hits, act.cost, act.taken_at, now);
    }
    ASSERT_EQ(vectors::ToJson(act, decision), vectors::ExpectedOf(step));
    ++*steps_run;
  }
}

class Vectors : public ::testing::TestWithParam<const char*> {};

TEST_P(Vectors, AreAnsweredExactly) {
  const json file = vectors::Read(GetParam());
  int steps_run = 0;
  for (const json& test : file.at("cases")) {
    ASSERT_NO_FATAL_FAILURE(RunCase(vectors::AlgorithmOf(file, test), test, &steps_run));
  }
  EXPECT_GE(steps_run, 900);
}

INSTANTIATE_TEST_SUITE_P(Of, Vectors, ::testing::ValuesIn(vectors::kFiles),
                         [](const auto& test) { return std::string(test.param); });
INSTANTIATE_TEST_SUITE_P(OfBlocks, Vectors, ::testing::Values(vectors::kBlocks),
                         [](const auto& test) { return std::string(test.param); });
INSTANTIATE_TEST_SUITE_P(OfCharges, Vectors, ::testing::Values(vectors::kCharges),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace vectors_test
}  // namespace headgate::algorithm
