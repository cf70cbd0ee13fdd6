// Detects when decisions begin to be made without the shared store (degraded mode), and when that
// ends. It counts decisions and ignores their cause, which may be an unreachable server, single
// timeouts, or a key whose server is unknown.
//
//   normal   --a decision without the store--> degraded
//   degraded --none for kQuiet, and the store decides again--> normal
//
// Use one watch for each degraded mode. It does no I/O and is not thread-safe.
#pragma once

#include <cstdint>

#include "headgate/base/time.h"

namespace headgate::observe {

class DegradedWatch {
 public:
  // Longer than a lease lives, so that decisions from leases granted before the outage are not
  // mistaken for a recovery.
  static constexpr base::Duration kQuiet = std::chrono::seconds(5);

  enum class Change : uint8_t { kNone, kBegan, kEnded };

  // `alone` and `together` are the decisions made so far without and with the store.
  Change Look(uint64_t alone, uint64_t together, base::Instant now);

  // Length of the current or the last degraded period, from the first to the last call of Look that
  // saw a decision without the store.
  base::Duration lasted() const { return last_at_ - began_at_; }
  uint64_t decided() const { return alone_ - alone_before_; }

 private:
  bool going_on_ = false;
  base::Instant began_at_{};
  base::Instant last_at_{};
  // The counts at the last call of Look.
  uint64_t alone_ = 0;
  uint64_t together_ = 0;
  uint64_t alone_before_ = 0;  // `alone` when the period began
};

}  // namespace headgate::observe
