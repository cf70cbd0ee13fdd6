// The cost of one decision for a program that embeds the library: reading the clock, finding the
// rule, hashing the key, and deciding.
//
// Expected on a 2.5 GHz server core: at most 300 ns. Bad results: more than 1 µs (something
// allocates or waits), or a time that grows faster with the number of keys than the time of the
// table alone (store/memory_bench.cc).
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "headgate/library/limiter.h"

namespace headgate {
namespace {

// Checks `range(0)` keys in turn, under a limit that one process never exhausts.
void BM_Check(benchmark::State& state) {
  auto limiter = Limiter::Make({.rules = {"api_key: 1000000000/second"}});
  std::vector<std::string> keys;
  for (int64_t i = 0; i < state.range(0); ++i) keys.push_back("client-" + std::to_string(i));
  size_t next = 0;
  for (auto _ : state) {
    auto verdict = limiter->Check("api_key", keys[next]);
    benchmark::DoNotOptimize(verdict);
    if (++next == keys.size()) next = 0;
  }
}
BENCHMARK(BM_Check)->Arg(1)->Arg(100'000);

}  // namespace
}  // namespace headgate

BENCHMARK_MAIN();
