// The reply of CL.THROTTLE: five integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "headgate/algorithm/decision.h"
#include "headgate/base/time.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::front::resp {

inline constexpr size_t kThrottleReplyBytesMax = 4 + 5 * wire::kRespNumberBytesMax;
// The whole error, with its code.
inline constexpr std::string_view kWrongType =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
// Whether the key holds a counter. A limit of CL.THROTTLE is at least 1 (store.h).
inline bool IsOfCounter(const algorithm::Decision& decision) { return decision.limit == 0; }

inline constexpr std::string_view kStoreUnreachable = "the shared store cannot be reached";

inline int64_t SecondsUp(base::Duration d) {
  constexpr int64_t kNsPerSecond = 1'000'000'000;
  return (d.count() + (kNsPerSecond - 1)) / kNsPerSecond;
}

// Writes the reply at `at`, which has room for kThrottleReplyBytesMax; returns its end. The limit
// must fit into 63 bits.
inline char* WriteThrottleReply(char* at, const algorithm::Decision& decision) {
  constexpr std::string_view kHead = "*5\r\n:0\r\n";
  std::memcpy(at, kHead.data(), kHead.size());
  if (!decision.allowed) at[5] = '1';
  at += kHead.size();
  at = wire::WriteRespNumber(at, ':', static_cast<int64_t>(decision.limit));
  at = wire::WriteRespNumber(at, ':', static_cast<int64_t>(decision.remaining));
  const bool wait = !decision.allowed && !decision.never_fits();
  at = wire::WriteRespNumber(at, ':', wait ? SecondsUp(decision.retry_after) : -1);
  return wire::WriteRespNumber(at, ':', SecondsUp(decision.reset_after));
}

}  // namespace headgate::front::resp
