// The cost of one decision in process, including the hash of a 16-byte key, without reading a
// clock.
//
// Expected on a 2.5 GHz server core: at most 20 ns for a hot key; for 10^6 random keys at most 100
// ns one by one and 60 ns in batches of 32. Two threads on one hot key, in batches, decide at least
// as many per second as one thread. Bad results: a hot key above 40 ns (something divides or
// allocates), or batches that are no faster than single decisions (no prefetching).
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "headgate/base/hash_rig.h"
#include "headgate/store/memory.h"

namespace headgate::store {
namespace {

using algorithm::Decision;
using base::Instant;

constexpr size_t kBatch = 32;
constexpr size_t kManyKeys = 1'000'000;
constexpr Instant kStart = Instant::FromNanos(1'790'000'000'000'000'000);

using Key = base::KeyBytes;

MemoryOptions Options(uint64_t max_buckets) {
  return {.max_buckets = max_buckets, .secret = base::SecretFromSeed(1)};
}

// A rate that one process never exhausts, so every decision consumes.
LimitHandle Plentiful(MemoryStore& store) {
  return *store.limits().Intern(*algorithm::Limit::Make(
      {.requests = 1'000, .period = std::chrono::seconds(1), .burst = uint64_t{1} << 40}));
}

TakeRequest RequestFor(const MemoryStore& store, const Key& key, const LimitHandle& limit) {
  return {
      .key = base::HashBytes(store.hash_secret(), base::KeyKind::kRaw, {key.data(), key.size()}),
      .limit = limit.get()};
}

void BM_HotKey(benchmark::State& state) {
  MemoryStore store(Options(1u << 20));
  const LimitHandle limit = Plentiful(store);
  const Key key = base::KeysFromSeed(2, 1)[0];
  Instant now = kStart;
  Decision decision;
  for (auto _ : state) {
    const TakeRequest request = RequestFor(store, key, limit);
    store.TakeOne(request, decision, now);
    benchmark::DoNotOptimize(decision);
    now += base::Duration(30);
  }
}
BENCHMARK(BM_HotKey);

// A new store for each run of a benchmark. All threads start the timed loop together, so only there
// may the other threads use it.
struct SharedByThreads {
  std::unique_ptr<MemoryStore> store;
  LimitHandle limit;

  void MakeOnFirstThread(const benchmark::State& state) {
    if (state.thread_index() != 0) return;
    limit = {};
    store = std::make_unique<MemoryStore>(Options(1u << 20));
    limit = Plentiful(*store);
  }
};

// One decision at a time, with the key hashed before. With two threads, the time is that between
// two decisions, whichever thread makes them.
void BM_HotBucket(benchmark::State& state) {
  static SharedByThreads shared;
  shared.MakeOnFirstThread(state);
  const Key key = base::KeysFromSeed(2, 1)[0];
  Instant now = kStart;
  Decision decision;
  std::optional<TakeRequest> request;
  for (auto _ : state) {
    if (!request) request = RequestFor(*shared.store, key, shared.limit);
    shared.store->TakeOne(*request, decision, now);
    benchmark::DoNotOptimize(decision);
    now += base::Duration(30);
  }
}
BENCHMARK(BM_HotBucket)->Threads(1)->Threads(2);

// A table in which all keys are live already, kept across repetitions.
struct Filled {
  explicit Filled(uint64_t max_buckets)
      : store(Options(max_buckets)),
        limit(Plentiful(store)),
        keys(base::KeysFromSeed(2, kManyKeys)) {
    Decision decision;
    for (const Key& key : keys) {
      const TakeRequest request = RequestFor(store, key, limit);
      store.TakeOne(request, decision, kStart);
    }
  }
  static Filled& OfSize(int64_t max_buckets) {
    static absl::flat_hash_map<int64_t, std::unique_ptr<Filled>> filled;
    auto& place = filled[max_buckets];
    if (place == nullptr) place = std::make_unique<Filled>(static_cast<uint64_t>(max_buckets));
    return *place;
  }

  MemoryStore store;
  LimitHandle limit;
  std::vector<Key> keys;
  size_t next = 0;

  const Key& NextKey() {
    if (++next == keys.size()) next = 0;
    return keys[next];
  }
};

void BM_RandomKeysOneByOne(benchmark::State& state) {
  Filled& filled = Filled::OfSize(state.range(0));
  Instant now = kStart;
  Decision decision;
  for (auto _ : state) {
    const TakeRequest request = RequestFor(filled.store, filled.NextKey(), filled.limit);
    filled.store.TakeOne(request, decision, now);
    benchmark::DoNotOptimize(decision);
    now += base::Duration(1);
  }
}
BENCHMARK(BM_RandomKeysOneByOne)->Arg(1 << 20)->Arg(1 << 22);

void BM_RandomKeysInBatches(benchmark::State& state) {
  Filled& filled = Filled::OfSize(state.range(0));
  std::array<TakeRequest, kBatch> requests;
  std::array<Decision, kBatch> decisions;
  Instant now = kStart;
  for (auto _ : state) {
    for (TakeRequest& request : requests)
      request = RequestFor(filled.store, filled.NextKey(), filled.limit);
    filled.store.Take(requests, decisions, now);
    benchmark::DoNotOptimize(decisions);
    now += base::Duration(kBatch);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kBatch));
  state.counters["per_decision"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kBatch,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(BM_RandomKeysInBatches)->Arg(1 << 20)->Arg(1 << 22);

// Items per second over all threads: two threads must reach the rate of one.
void BM_HotKeyInBatches(benchmark::State& state) {
  static SharedByThreads shared;
  shared.MakeOnFirstThread(state);
  std::array<TakeRequest, kBatch> requests;
  std::array<Decision, kBatch> decisions;
  const Key key = base::KeysFromSeed(2, 1)[0];
  Instant now = kStart;
  for (auto _ : state) {
    for (TakeRequest& request : requests) request = RequestFor(*shared.store, key, shared.limit);
    shared.store->Take(requests, decisions, now);
    benchmark::DoNotOptimize(decisions);
    now += base::Duration(kBatch);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kBatch));
  state.counters["per_decision"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kBatch,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(BM_HotKeyInBatches)->Threads(1)->Threads(2)->UseRealTime();

// A flood on a full table: each request has a new key, for which another bucket is evicted.
void BM_NewKeysInAFullTable(benchmark::State& state) {
  MemoryStore store(Options(1u << 20));
  const LimitHandle limit = *store.limits().Intern(
      *algorithm::Limit::Make({.requests = 1, .period = std::chrono::hours(1)}));
  std::mt19937_64 random(5);
  Decision decision;
  const auto take = [&] {
    Key key;
    const uint64_t halves[2] = {random(), random()};
    std::memcpy(key.data(), halves, sizeof halves);
    const TakeRequest request = RequestFor(store, key, limit);
    store.TakeOne(request, decision, kStart);
  };
  for (uint64_t i = 0; i < 1u << 20; ++i) take();
  for (auto _ : state) take();
}
BENCHMARK(BM_NewKeysInAFullTable);

uint64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Ten million live buckets in a table of that size. Expected: at most 40 bytes each, and no
// eviction.
void BM_ResidentBytesPerBucket(benchmark::State& state) {
  constexpr uint64_t kBuckets = 10'000'000;
  for (auto _ : state) {
    const uint64_t before = ResidentBytes();
    MemoryStore store(Options(kBuckets));
    const LimitHandle limit = Plentiful(store);
    std::mt19937_64 random(3);
    std::array<TakeRequest, kBatch> requests;
    std::array<Decision, kBatch> decisions;
    for (uint64_t i = 0; i < kBuckets; i += kBatch) {
      for (TakeRequest& request : requests) {
        Key key;
        const uint64_t halves[2] = {random(), random()};
        std::memcpy(key.data(), halves, sizeof halves);
        request = RequestFor(store, key, limit);
      }
      store.Take(requests, decisions, kStart);
    }
    const MemoryStats stats = store.stats();
    state.counters["bytes_per_bucket"] =
        static_cast<double>(ResidentBytes() - before) / static_cast<double>(stats.buckets);
    state.counters["buckets"] = static_cast<double>(stats.buckets);
    state.counters["evictions"] = static_cast<double>(stats.evictions);
  }
}
BENCHMARK(BM_ResidentBytesPerBucket)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace headgate::store

BENCHMARK_MAIN();
