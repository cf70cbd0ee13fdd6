// The limits of requests in flight that fit to an upstream, from its knee: how many requests it
// works on at once, in thousandths. For a knee of 10 the limit is 18. It stays as it is while it is
// between the low mark, 15, and the high mark, 24.
#pragma once

#include <cstdint>

#include "headgate/capacity/load_window.h"

namespace headgate::capacity {

constexpr uint64_t LimitFor(uint64_t knee_milli) { return (knee_milli * 8 / 5 + 2000) / kMilli; }
constexpr uint64_t LimitLow(uint64_t knee_milli) { return (knee_milli * 7 / 5 + 1000) / kMilli; }
constexpr uint64_t LimitHigh(uint64_t knee_milli) { return (knee_milli * 2 + 4000) / kMilli; }
// In flight, if requests come in bursts: the upstream has no idle worker.
constexpr uint64_t BusyMark(uint64_t knee_milli) { return (knee_milli * 6 / 5 + 1999) / kMilli; }

}  // namespace headgate::capacity
