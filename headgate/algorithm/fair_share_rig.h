// A pool and its clients in virtual time, for tests.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "headgate/algorithm/fair_share_pool.h"

namespace headgate::algorithm {

inline base::Instant At(base::Duration d) { return base::Instant::FromNanos(0) + d; }

inline FairSharePool MakePool(const FairShareOptions& options) {
  return *FairSharePool::Make(options);
}

// Sends `count` requests of one client; returns how many were allowed.
inline uint64_t Ask(FairSharePool& pool, std::string_view client, int count, base::Instant now) {
  uint64_t allowed = 0;
  for (int i = 0; i < count; ++i) allowed += pool.Decide({.client = client}, now).allowed;
  return allowed;
}

inline uint64_t CapacityOf(FairSharePool& pool, std::string_view client, base::Instant now) {
  pool.Advance(now);
  for (size_t i = 0; i < pool.client_count(); ++i)
    if (pool.client(i).name == client) return pool.client(i).figures.capacity;
  return 0;
}

// In order of arrival.
inline std::vector<uint64_t> CapacitiesOf(const FairSharePool& pool) {
  std::vector<uint64_t> capacities;
  for (size_t i = 0; i < pool.client_count(); ++i)
    capacities.push_back(pool.client(i).figures.capacity);
  return capacities;
}

}  // namespace headgate::algorithm
