#include "headgate/http/http2/flood_guard.h"

#include <algorithm>

namespace headgate::http::http2 {
namespace {

using namespace std::chrono_literals;

constexpr std::array<Budget, kFloods> kBudgets = {{
    {1000, 30ms},  // resets: as nghttp2. Each complete answer earns one
    {100, 100ms},  // provoked
    {200, 50ms},   // pings: gRPC measures the bandwidth with one per round trip, so DATA earns
    {50, 1s},      // settings
    {200, 50ms},   // priorities: each stream earns ten
    {100, 100ms},  // unknown frames
    {1000, 10ms},  // window updates: each stream earns five, each DATA frame sent four
    {20, 1s},      // empty data: Envoy takes one in a row
    {1, 1s},       // continuations: judged for each header block, see Endpoint
    {1, 1s},       // fields: likewise
}};

constexpr size_t Index(Flood kind) { return static_cast<size_t>(kind); }

// A whole budget takes at most 2^40 ns to refill, so its sum with an instant fits (base/time.h).
static_assert(std::all_of(kBudgets.begin(), kBudgets.end(), [](const Budget& budget) {
  return budget.burst * budget.interval.count() < int64_t{1} << 40;
}));

}  // namespace

bool TakeFrom(const Budget& budget, base::Instant& full_at, base::Instant now) {
  const base::Instant then = std::max(full_at, now) + budget.interval;
  if (then - now > budget.burst * budget.interval) return false;
  full_at = then;
  return true;
}

bool FloodGuard::Take(Flood kind, base::Instant now) {
  return TakeFrom(kBudgets[Index(kind)], full_at_[Index(kind)], now);
}

void FloodGuard::Earn(Flood kind, int events) {
  base::Instant& full_at = full_at_[Index(kind)];
  full_at =
      std::max(base::Instant::FromNanos(0), full_at - events * kBudgets[Index(kind)].interval);
}

}  // namespace headgate::http::http2
