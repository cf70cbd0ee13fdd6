// Notices when decisions begin to be made without the shared store, and when that is over. It looks
// at what was decided, not at why: a server that is away, calls that time out one by one, a key
// whose server nobody knows.
//
//   with the store --a decision without it--> without it
//   without it --none for kQuiet, and the store decides again--> with the store
//
// One for each mode. Pure; not thread-safe.
#pragma once

#include <cstdint>

#include "headgate/base/time.h"

namespace headgate::app {

class DegradedWatch {
 public:
  // Longer than a lease lives: what was leased before the store went away does not count as its
  // return.
  static constexpr base::Duration kQuiet = std::chrono::seconds(5);

  enum class Change : uint8_t { kNone, kBegan, kEnded };

  // So many decisions were made without the store so far, and so many with it.
  Change Look(uint64_t alone, uint64_t together, base::Instant now);

  // The last time, or what goes on: from the look that first saw it to the one that last did.
  base::Duration lasted() const { return last_at_ - began_at_; }
  uint64_t decided() const { return alone_ - alone_before_; }

 private:
  bool going_on_ = false;
  base::Instant began_at_{};
  base::Instant last_at_{};
  // At the last look.
  uint64_t alone_ = 0;
  uint64_t together_ = 0;
  uint64_t alone_before_ = 0;  // when it began
};

}  // namespace headgate::app
