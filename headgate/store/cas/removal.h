// When a value may be removed from the store.
//
// Versions may start again when a value is removed and created again. So a writer that still knows
// a version of the removed value could replace the new value by mistake. Two rules exclude this:
//
//   - a writer uses a version for at most kVersionAgeMax after it asked for it
//   - a value is removed only if nobody has needed it for kRemovalGrace
//
// A process that removes values reads each one first, asks MayRemove, and passes the version that
// it has read to Put. A bucket that is reset, or is full again, is replaced by an empty one and not
// removed.
#pragma once

#include "headgate/base/time.h"
#include "headgate/store/cas/envelope.h"

namespace headgate::store::cas {

// Includes the difference between the clocks of two machines.
inline constexpr base::Duration kVersionAgeMax = std::chrono::seconds(5);
inline constexpr base::Duration kRemovalGrace = std::chrono::minutes(2);

// Whether the value may be removed at `now`, the wall clock of this machine.
inline bool MayRemove(const Envelope& envelope, base::Instant now) {
  return now - envelope.expires_at >= kRemovalGrace;
}

}  // namespace headgate::store::cas
