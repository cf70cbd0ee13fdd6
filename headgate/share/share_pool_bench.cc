// Nanoseconds per request in a pool that several threads share: Admit, and OnEnd with a capacity
// that is found.
//
// Expected on a 2.4 GHz EPYC with two cores, release preset: 45 ns with a fixed capacity and 8
// clients, 95 ns with 1,024 clients, 85 ns with OnEnd and a capacity that is found. With two
// threads that do nothing else, two to three times as much. A bad result: more than 1 µs with two
// threads; then something under the lock allocates or divides.
#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "headgate/share/share_pool.h"

namespace headgate::share {
namespace {

using base::Instant;
using std::chrono::seconds;

constexpr Instant kStart{1'790'000'000'000'000'000};

std::unique_ptr<SharePool> MakeSharePool(bool finds_capacity) {
  ShareOptions options{.pool = {.capacity = finds_capacity ? 0u : 4'000'000'000u,
                                .cycle = seconds(10),
                                .reservation = {1, 10}}};
  if (finds_capacity) options.find_capacity = capacity::CapacityOptions{};
  return *SharePool::Make(options);
}

std::vector<std::string> Names(int64_t count) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) names.push_back("client-" + std::to_string(i));
  return names;
}

void AdmitKnownClients(benchmark::State& run) {
  static std::unique_ptr<SharePool> pool;
  if (run.thread_index() == 0) pool = MakeSharePool(false);
  const std::vector<std::string> names = Names(run.range(0));
  size_t i = 0;
  Instant now = kStart;
  for (auto _ : run) {
    now += std::chrono::microseconds(1);
    benchmark::DoNotOptimize(pool->Admit(names[i], 1, now));
    if (++i == names.size()) i = 0;
  }
}
BENCHMARK(AdmitKnownClients)->Arg(8)->Arg(1024)->ThreadRange(1, 4)->UseRealTime();

void AdmitAndEnd(benchmark::State& run) {
  static std::unique_ptr<SharePool> pool;
  if (run.thread_index() == 0) pool = MakeSharePool(true);
  const std::vector<std::string> names = Names(run.range(0));
  size_t i = 0;
  Instant now = kStart;
  for (auto _ : run) {
    now += std::chrono::microseconds(1);
    const Verdict verdict = pool->Admit(names[i], 1, now);
    if (verdict.admitted)
      pool->OnEnd(capacity::Outcome::kAnswered, now, now + std::chrono::microseconds(1));
    if (++i == names.size()) i = 0;
  }
}
BENCHMARK(AdmitAndEnd)->Arg(8)->ThreadRange(1, 4)->UseRealTime();

void TakeSnapshot(benchmark::State& run) {
  const std::unique_ptr<SharePool> pool = MakeSharePool(false);
  for (const std::string& name : Names(run.range(0))) pool->Admit(name, 1, kStart);
  PoolSnapshot snapshot;
  for (auto _ : run) pool->TakeSnapshot(kStart, snapshot);
}
BENCHMARK(TakeSnapshot)->Arg(8)->Arg(1024);

}  // namespace
}  // namespace headgate::share

BENCHMARK_MAIN();
