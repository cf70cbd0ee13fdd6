// Bounds the cheap frames that make an endpoint work: each kind has a budget that refills with
// time, and that honest work earns. The GCRA of algorithm/token_bucket.h, in the smallest form.
//
// The numbers come from Envoy's defaults, nghttp2's rate limit of resets, and the most that
// browsers, gRPC clients and load generators send.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "headgate/base/counter.h"
#include "headgate/base/time.h"

namespace headgate::http::http2 {

enum class Flood : uint8_t {
  kResets,         // streams that the peer opens and resets: CVE-2023-44487
  kProvoked,       // streams that the peer makes us reset or refuse: CVE-2025-8671
  kPings,          // CVE-2019-9512
  kSettings,       // CVE-2019-9515
  kPriorities,     // PRIORITY and PRIORITY_UPDATE: CVE-2019-9513
  kUnknownFrames,  // frame types that we ignore
  kWindowUpdates,  // more of them than the DATA that we sent explains
  kEmptyData,      // DATA without data that does not end its stream: CVE-2019-9518
  kContinuations,  // a header block in many frames: CVE-2024-28182
  kFields,         // a small header block that decodes to very many fields
};
inline constexpr size_t kFloods = 10;

// Shared by the sessions of one loop. Everything only grows.
struct Counters {
  std::array<base::Counter, kFloods> floods;  // connections closed for each kind
  base::Counter malformed_heads;              // streams reset because of their head
  base::Counter refused_heads;                // heads answered here: 417, 431 or 501
  base::Counter timeouts;                     // streams reset for request_timeout
  // Times that a connection was not read because its output was not taken.
  base::Counter output_stops;
};

// This many events may come at once, and one more in each interval.
struct Budget {
  int64_t burst;
  base::Duration interval;
};
// Takes one event from a budget that is full again at `full_at`. Returns false if none is left.
// `now` must not go back.
bool TakeFrom(const Budget& budget, base::Instant& full_at, base::Instant now);

class FloodGuard {
 public:
  // Whether the budget has a place for one more event at `now`, which must not go back; takes it.
  bool Take(Flood kind, base::Instant now);
  // Gives `events` back, at most until the budget is full.
  void Earn(Flood kind, int events);

 private:
  // The time at which each budget is full again. It is ahead of now by at most the time in which
  // the whole budget refills.
  std::array<base::Instant, kFloods> full_at_{};
};

}  // namespace headgate::http::http2
