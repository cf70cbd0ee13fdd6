// A view of a pool that its clients share (fair_share_pool.h), for metrics: its cycles, its totals,
// and its clients. All amounts are sums of costs, which are numbers of requests if each costs 1.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "headgate/base/time.h"

namespace headgate::algorithm {

// Why a cycle ended.
enum class CycleEnd : uint8_t {
  kDue,        // its time had passed
  kNewClient,  // a client was seen for the first time (OnNewClient::kRestart)
  kReclaim,    // a client wanted its own back (Reclaim::kAtOnce)
  kCapacity,   // the first capacity was found (BeginAnew)
};
inline constexpr size_t kCycleEndKinds = 4;

struct CycleView {
  uint64_t number = 1;  // of the cycle that runs
  base::Instant start{0};
  base::Instant end{0};  // earlier than planned if a client waits for its own
  // The cycle before. Its length is 0 in the first cycle.
  base::Duration last_length{0};
  CycleEnd last_end = CycleEnd::kDue;
  std::array<uint64_t, kCycleEndKinds> ends{};  // by reason
};

// Counts since the pool was made, or since the client joined it.
struct FairShareCounts {
  uint64_t allowed = 0;
  uint64_t rejected = 0;     // by the pool
  uint64_t sent_anyway = 0;  // rejected by the pool, but sent (CountSentAnyway)
  uint64_t not_taken = 0;    // demand that takes nothing (FairShareRequest::takes)
  bool operator==(const FairShareCounts&) const = default;
};

struct ClientFigures {
  uint32_t weight = 1;
  uint64_t demand = 0;    // in the last full cycle; the basis of the capacity
  uint64_t capacity = 0;  // in this cycle
  // The difference between the capacity and the even share D, without the effect of rounding: at
  // most one of them is not 0.
  uint64_t borrowed = 0;
  uint64_t lent = 0;
  uint64_t demand_now = 0;  // since the last full cycle ended
  uint64_t used_now = 0;    // of demand_now
  FairShareCounts counts{};
};

struct ClientView {
  std::string_view name;  // valid until the pool is changed
  ClientFigures figures;
};

}  // namespace headgate::algorithm
