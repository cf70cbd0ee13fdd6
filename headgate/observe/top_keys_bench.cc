// The cost that the lists of top keys add to a decision while somebody asks for them. Expected on a
// 2.5 GHz core: about 80 ns for one list if the keys have counters, 200 ns if each key takes over
// the counter of another one. While nobody asks, a decision only reads a flag, which is not
// measured here. A bad result is five times that: it means a lock or an allocation on this path.
#include <benchmark/benchmark.h>

#include <chrono>
#include <string>
#include <vector>

#include "headgate/observe/top_keys.h"

namespace headgate::observe {
namespace {

// A rule with one entry, whose denials and admissions are counted.
struct Rig {
  explicit Rig(const TopKeys::Options& options = {}) : top(options) {
    rule.domain = "edge";
    rule.path = "api_key";
    match.rule = &rule;
    match.step_count = 1;
    series = top.OnRule(rule);
  }
  void Count(uint32_t worker, limiter::Outcome outcome, std::string_view value) {
    const rule::Entry entry{"api_key", value};
    top.OnDecision(worker, {outcome, 1, &rule, series, "edge", {&entry, 1}, &match});
  }

  TopKeys top;
  rule::Rule rule;
  rule::Match match;
  uint32_t series = 0;
};

// `range(0)` keys in turns.
void CountKeys(benchmark::State& state) {
  const auto start = base::Instant::FromNanos(1'790'000'000'000'000'000);
  Rig rig;
  std::vector<std::string> values;
  for (int64_t i = 0; i < state.range(0); ++i) values.push_back("client-" + std::to_string(i));
  (void)rig.top.Ask({}, start);
  rig.top.Tick(start);
  size_t next = 0;
  for (auto _ : state) {
    rig.Count(0, limiter::Outcome::kAllowed, values[next]);
    if (++next == values.size()) next = 0;
  }
}
BENCHMARK(CountKeys)->Arg(1)->Arg(200)->Arg(100'000);

// The work of the thread that calls Tick, each second, for `range(0)` threads.
void Tick(benchmark::State& state) {
  auto now = base::Instant::FromNanos(1'790'000'000'000'000'000);
  const auto workers = static_cast<uint32_t>(state.range(0));
  Rig rig({.workers = workers});
  for (auto _ : state) {
    state.PauseTiming();
    (void)rig.top.Ask({}, now);
    for (uint32_t worker = 0; worker < workers && rig.top.hears_decisions(); ++worker) {
      for (uint32_t i = 0; i < 2 * TopKeys::kCounters; ++i)
        rig.Count(worker, limiter::Outcome::kDenied, std::to_string(i * (worker + 1)));
    }
    state.ResumeTiming();
    rig.top.Tick(now = now + std::chrono::seconds(1));
  }
}
BENCHMARK(Tick)->Arg(1)->Arg(8)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace headgate::observe

BENCHMARK_MAIN();
