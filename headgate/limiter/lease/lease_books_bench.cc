// Measures a decision from a lease, next to the same from the memory store, including the hash of a
// 16-byte key but without the clock.
//
// Expected: no more than 1.2 times the memory store's, for one hot key as for as many as the book
// follows. A bad result is twice as much (the record has grown over more cache lines, or something
// divides).
#include <benchmark/benchmark.h>

#include <array>
#include <memory>
#include <vector>

#include "headgate/base/hash_rig.h"
#include "headgate/limiter/lease/lease_books.h"
#include "headgate/store/memory.h"

namespace headgate::limiter::lease {
namespace {

using base::BootTime;
using Key = base::KeyBytes;

algorithm::Limit Plentiful() {
  return *algorithm::Limit::Make(
      {.requests = 1'000, .period = std::chrono::seconds(1), .burst = uint64_t{1} << 40});
}

base::Hash128 HashOf(const base::HashSecret& secret, const Key& key) {
  return base::HashBytes(secret, base::KeyKind::kRaw, {key.data(), key.size()});
}

void BM_Leased(benchmark::State& state) {
  const base::HashSecret secret = base::SecretFromSeed(1);
  const std::vector<Key> keys = base::KeysFromSeed(2, static_cast<size_t>(state.range(0)));
  store::LimitTable limits;
  const store::LimitHandle limit = *limits.Intern(Plentiful());
  // Room for all: one that finds no place is asked of the store.
  LeaseBooks books({.node = 1, .keys_max = 2 * 65'536});
  const BootTime now{1'000'000'000};
  const auto name = [](std::string& out) { out += "k"; };
  const auto send_nothing = [](const LeaseAction&) {};
  for (const Key& key : keys) {
    const base::Hash128 hash = HashOf(secret, key);
    uint64_t asked = 0;
    const auto keep = [&](const LeaseAction& action) { asked = action.ask.id.number; };
    for (int k = 0; k < 4; ++k)
      benchmark::DoNotOptimize(books.Take(hash, *limit, 1, name, now, keep));
    store::SharedAnswer answer;
    answer.decision.remaining = 5;
    answer.grant = {.granted = 0xffff'ffff, .ttl = std::chrono::seconds(2)};
    books.OnGrant(hash, asked, answer, now, keep);
  }
  size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        books.Take(HashOf(secret, keys[i]), *limit, 1, name, now, send_nothing));
    if (++i == keys.size()) i = 0;
  }
}
BENCHMARK(BM_Leased)->Arg(1)->Arg(30'000);

void BM_Memory(benchmark::State& state) {
  const std::vector<Key> keys = base::KeysFromSeed(2, static_cast<size_t>(state.range(0)));
  store::MemoryStore store({.max_buckets = 65'536, .secret = base::SecretFromSeed(1)});
  const store::LimitHandle limit = *store.limits().Intern(Plentiful());
  const base::Instant now = base::Instant::FromNanos(1'790'000'000'000'000'000);
  size_t i = 0;
  for (auto _ : state) {
    const store::TakeRequest request{.key = HashOf(store.hash_secret(), keys[i]),
                                     .limit = limit.get()};
    algorithm::Decision decision;
    store.Take({&request, 1}, {&decision, 1}, now);
    benchmark::DoNotOptimize(decision);
    if (++i == keys.size()) i = 0;
  }
}
BENCHMARK(BM_Memory)->Arg(1)->Arg(30'000);

}  // namespace
}  // namespace headgate::limiter::lease

BENCHMARK_MAIN();
