// The interface to the locks of a service, for keys whose rules say `strict: lock`: one instance at
// a time decides about such a key, in the order in which they asked.
//
//   Take("k")     → held, fence 17      (perhaps after other instances have given it back)
//   …                                   the rounds of the key
//   Release("k")
//
// A lock makes decisions fair, but their correctness does not depend on it. An instance that has
// lost its lock and does not know it yet can still try to write. So each write also has a condition
// on the version (versioned_store.h), and the value remembers the largest fence under which it was
// written.
//
// One object per event loop, used only on that loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "headgate/base/status.h"

namespace headgate::store::cas {

class KeyLocks {
 public:
  virtual ~KeyLocks() = default;

  // Called with the fence when the lock is held. A fence is more than 0, and larger than the fence
  // of any earlier holder. Called with an error when the lock cannot be obtained, or was lost; this
  // is the last call. Not called any more after Release.
  //
  // Unavailable: the service is unreachable, or the session that had the lock has ended.
  // ResourceExhausted, PermissionDenied and others come from the service.
  using Listener = std::function<void(const absl::StatusOr<uint64_t>& fence)>;

  // Queues for the lock of a key. This object must not hold it or queue for it already. May call
  // back before it returns.
  virtual void Take(std::string_view name, Listener listener) = 0;
  // Gives the lock back, or stops queueing for it. The service forgets this request for the lock in
  // any case, later if it does not answer now.
  virtual void Release(std::string_view name) = 0;
};

}  // namespace headgate::store::cas
