// For the tests of this folder: a memory store whose calls take one line. Keys are numbers.
#pragma once

#include <span>

#include "headgate/base/hash_rig.h"
#include "headgate/store/memory.h"

namespace headgate::store {

inline constexpr base::Instant kStart = base::Instant::FromNanos(1'790'000'000'000'000'000);

struct MemoryRig {
  explicit MemoryRig(uint64_t max_buckets = 1000, uint64_t seed = 1)
      : store({.max_buckets = max_buckets, .secret = base::SecretFromSeed(seed)}) {}

  LimitHandle Make(const algorithm::LimitSpec& spec, uint32_t version = 0) {
    return *store.limits().Intern(*algorithm::Limit::Make(spec), version);
  }
  base::Hash128 Key(uint64_t key) const {
    return base::HashBytes(store.hash_secret(), base::KeyKind::kRaw,
                           {reinterpret_cast<const char*>(&key), sizeof key});
  }
  TakeRequest Request(uint64_t key, const LimitHandle& limit, algorithm::Cost cost) const {
    return {.key = Key(key), .limit = limit.get(), .cost = cost};
  }

  algorithm::Decision Ask(uint64_t key, const LimitHandle& limit, base::Instant now,
                          algorithm::Cost cost = 1, Operation operation = Operation::kTake,
                          std::span<const LimitChange> history = {}) {
    TakeRequest request = Request(key, limit, cost);
    request.operation = operation;
    request.history = history;
    algorithm::Decision decision;
    store.TakeOne(request, decision, now);
    return decision;
  }
  // A request of cost 0.
  algorithm::Decision Peek(uint64_t key, const LimitHandle& limit, base::Instant now) {
    return Ask(key, limit, now, 0);
  }

  uint64_t buckets() const { return store.stats().buckets; }

  MemoryStore store;
};

}  // namespace headgate::store
