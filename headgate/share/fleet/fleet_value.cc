#include "headgate/share/fleet/fleet_value.h"

#include <algorithm>

#include "headgate/algorithm/fair_share_state.h"
#include "headgate/base/percent.h"

namespace headgate::share::fleet {
namespace {

using algorithm::FairSharePool;
using base::Duration;
using base::Instant;

// A pool whose clients never leave is kept for this many silent cycles.
constexpr uint32_t kCyclesKept = 100;
constexpr Duration kKeptLeast = std::chrono::minutes(1);
constexpr Duration kKeptMost = std::chrono::hours(24 * 365);

}  // namespace

std::string ValueName(std::string_view pool) {
  return "hg:{f|" + base::PercentEncoded(pool, "-._") + "}";
}

Instant ExpiryOf(const FairSharePool& pool, Instant now) {
  const uint32_t leave = pool.options().leave_after_cycles;
  const int64_t cycles = 2 + int64_t{leave == 0 ? kCyclesKept : std::min(leave, kCyclesKept)};
  const Duration cycle = std::min(pool.options().cycle, kKeptMost / cycles);
  return base::Clamp(now + std::max(cycle * cycles, kKeptLeast));
}

ReadValue Read(std::string_view bytes, Instant now) {
  ReadValue read;
  auto envelope = store::cas::ParseEnvelope(bytes);
  if (envelope) read.pool = algorithm::FairShareState::Parse(envelope->bucket);
  if (!read.pool) {
    read.unusable = Unusable::kCorrupt;
    return read;
  }
  if (read.pool->cycle().start - now > read.pool->options().cycle) {
    read.pool.reset();
    read.unusable = Unusable::kAhead;
    return read;
  }
  read.envelope = *std::move(envelope);
  read.envelope.bucket.clear();
  return read;
}

std::string Write(const FairSharePool& pool, store::cas::Envelope envelope) {
  envelope.bucket.clear();
  algorithm::FairShareState::Append(pool, envelope.bucket);
  std::string bytes;
  store::cas::AppendEnvelope(envelope, bytes);
  return bytes;
}

}  // namespace headgate::share::fleet
