// Nanoseconds per request in a pool that several threads share: Admit and OnEnd.
//
// Expected on two cores of a Xeon that other programs used too, with -O2: 170 to 200 ns of CPU time
// with 8 or 1,024 clients, with a fixed capacity or one that is found; more in real time if threads
// wait for each other. A bad result: more than 1 µs with two threads; then something under the lock
// allocates or divides.
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

void AdmitAndEnd(benchmark::State& run, bool finds_capacity) {
  static std::unique_ptr<SharePool> pool;
  if (run.thread_index() == 0) pool = MakeSharePool(finds_capacity);
  const std::vector<std::string> names = Names(run.range(0));
  size_t i = 0;
  Instant now = kStart;
  for (auto _ : run) {
    now += std::chrono::microseconds(1);
    const PoolAnswer verdict = pool->Admit(names[i], 1, now);
    if (verdict.admitted) {
      pool->OnEnd(
          {.number = verdict.number, .outcome = capacity::RequestEnd::kAnswered, .sent_at = now},
          now + std::chrono::microseconds(1));
    }
    if (++i == names.size()) i = 0;
  }
}
BENCHMARK_CAPTURE(AdmitAndEnd, fixed, false)->Arg(8)->Arg(1024)->ThreadRange(1, 4)->UseRealTime();
BENCHMARK_CAPTURE(AdmitAndEnd, found, true)->Arg(8)->ThreadRange(1, 4)->UseRealTime();

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
