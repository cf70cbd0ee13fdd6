// The cost of a pipelined CL.THROTTLE from bytes to bytes: parse, find the limit, hash the key,
// decide, reply. No socket.
//
// Expected on one core of a 2 GHz server, release build: about 100 ns per command with hot keys,
// 150 ns with 10⁶ random keys (due to memory latency). A bad result is twice that: a command
// allocates or takes a lock.
#include <benchmark/benchmark.h>

#include <random>

#include "headgate/front/resp/conversation.h"

namespace headgate::front::resp {
namespace {

constexpr int kPipeline = 32;

// Reads of 32 commands each, over `keys` keys.
std::vector<std::string> Reads(uint64_t keys, size_t count) {
  std::mt19937_64 random(7);
  std::vector<std::string> reads(count);
  for (std::string& read : reads) {
    for (int i = 0; i < kPipeline; ++i) {
      char key[24];
      const int length = std::snprintf(key, sizeof key, "user:%011llu",
                                       static_cast<unsigned long long>(random() % keys));
      read += Conversation::Bytes(
          {"CL.THROTTLE", std::string_view(key, static_cast<size_t>(length)), "15", "30", "60"});
    }
  }
  return reads;
}

void BM_PipelinedThrottle(benchmark::State& state) {
  World world;
  store::MemoryStore store(store::MemoryOptions{.max_buckets = 4u << 20});
  Context context({.checker = world.checker, .access = world.access, .version = "bench"});
  RespSession session(context, {});
  const auto keys = static_cast<uint64_t>(state.range(0));
  const std::vector<std::string> reads = Reads(keys, keys == 1 ? 1 : 40'000);
  std::string output;
  base::Instant now = base::Instant::FromNanos(1'790'000'000'000'000'000);
  size_t next = 0;
  for (auto _ : state) {
    output.clear();
    session.OnBytes(reads[next], output, now);
    benchmark::DoNotOptimize(output.data());
    now += std::chrono::microseconds(3);
    next = next + 1 == reads.size() ? 0 : next + 1;
  }
  state.SetItemsProcessed(state.iterations() * kPipeline);
  state.counters["ns_per_command"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kPipeline * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(BM_PipelinedThrottle)->Arg(1)->Arg(1'000)->Arg(1'000'000);

void BM_OneThrottleARead(benchmark::State& state) {
  World world;
  RespSession session(world.context, {});
  const std::string read =
      Conversation::Bytes({"CL.THROTTLE", "user:00000000001", "15", "30", "60"});
  std::string output;
  base::Instant now = base::Instant::FromNanos(1'790'000'000'000'000'000);
  for (auto _ : state) {
    output.clear();
    session.OnBytes(read, output, now);
    benchmark::DoNotOptimize(output.data());
    now += std::chrono::microseconds(1);
  }
}
BENCHMARK(BM_OneThrottleARead);

}  // namespace
}  // namespace headgate::front::resp

BENCHMARK_MAIN();
