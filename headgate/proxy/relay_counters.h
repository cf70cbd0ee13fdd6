// Counts how the exchanges of one loop ended. That loop writes, any thread reads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "headgate/base/counter.h"

namespace headgate::proxy {

// How an exchange that was let through ended.
enum class RelayOutcome : uint8_t {
  kAnswered,     // the upstream's answer was passed on completely
  kUnreachable,  // 502: no connection to the upstream
  kBroken,       // 502: the upstream closed the connection, or violated the protocol
  kTooSlow,      // 504: the upstream did not answer in time
  kNoPlace,      // 503: too many requests waited for a connection, or this one waited too long
  kSlowClient,   // 408: the client stopped sending
  kSlowReader,   // the client stopped reading the answer
  kUnsuitable,   // the upstream does not speak the protocol that the request needs
  kCutShort,     // the upstream's answer ended in the middle
  kMalformed,    // the body of the request violates the protocol; HTTP/1 gets 400 then
  kClientGone,
};
inline constexpr size_t kRelayOutcomeCount = static_cast<size_t>(RelayOutcome::kClientGone) + 1;
std::string_view Name(RelayOutcome outcome);

// The upper bounds of the buckets for the time to an upstream's head, in nanoseconds: 500 µs to
// 60 s.
inline constexpr std::array<uint64_t, 16> kAnswerBounds = {
    500'000,       1'000'000,      2'000'000,      5'000'000,     10'000'000,    20'000'000,
    50'000'000,    100'000'000,    200'000'000,    500'000'000,   1'000'000'000, 2'000'000'000,
    5'000'000'000, 10'000'000'000, 30'000'000'000, 60'000'000'000};

struct RelayCounters {
  std::array<base::Counter, kRelayOutcomeCount> outcomes{};
  base::Counter begun{};    // begun and not in `outcomes`: open
  base::Counter retries{};  // further attempts
  base::Counter tunnels{};
  base::HistogramCounter<kAnswerBounds> head_seconds{};  // from the sent head to the answer's head

  void Add(RelayOutcome outcome) { outcomes[static_cast<size_t>(outcome)].Add(); }
};

}  // namespace headgate::proxy
