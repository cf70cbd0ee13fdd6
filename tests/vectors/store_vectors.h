// Runs the vectors of a file through a store.
#pragma once

#include <functional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "headgate/store/store.h"
#include "tests/vectors/vectors.h"

namespace headgate::vectors {

struct StoreStep {
  algorithm::LimitSpec spec;
  store::Operation operation = store::Operation::kTake;
  algorithm::Cost cost = 0;
  base::Instant taken_at{0};
  base::Instant now{0};
};

// Answers a step on the bucket of a case; each case has a bucket of its own. The change of a limit
// is a request that can never fit, since a store carries the bucket over with the next request.
using AskStore = std::function<algorithm::Decision(size_t bucket, const StoreStep& step)>;

inline void ExpectAnswers(const std::string& name, const AskStore& ask) {
  const json file = Read(name);
  size_t bucket = 0;
  int steps_run = 0;
  for (const json& test : file.at("cases")) {
    const std::string algorithm = AlgorithmOf(file, test);
    algorithm::LimitSpec spec = SpecOf(algorithm, test.at("limit"));
    ++bucket;
    for (const json& step : test.at("steps")) {
      SCOPED_TRACE(fmt::format("{} {} step {}", algorithm, test.at("limit").dump(), step.dump()));
      const auto now = base::Instant::FromNanos(step.at("at_ns").get<int64_t>());
      if (step.contains("change")) {
        Apply(step["change"], spec);
        ask(bucket, {.spec = spec, .cost = uint64_t{1} << 40, .now = now});
        continue;
      }
      const Act act = ActOf(step);
      const store::Operation operation = act.kind == Act::Kind::kTake ? store::Operation::kTake
                                         : act.kind == Act::Kind::kCharge
                                             ? store::Operation::kCharge
                                             : store::Operation::kUndo;
      const algorithm::Decision decision = ask(bucket, {.spec = spec,
                                                        .operation = operation,
                                                        .cost = act.cost,
                                                        .taken_at = act.taken_at,
                                                        .now = now});
      ASSERT_EQ(ToJson(act, decision), ExpectedOf(step));
      ++steps_run;
    }
  }
  EXPECT_GE(steps_run, 900);
}

}  // namespace headgate::vectors
