// The interface to a service that can store buckets: it has values with versions, and replaces a
// value only if it has not changed since it was read. ZooKeeper and DynamoDB are such services;
// Redis is one by a script.
//
//   Get("k")                       → bytes, version 7
//   Put("k", bytes, expected 7)    → version 8
//   Put("k", bytes, expected 7)    → Aborted: it is 8 now
//
// One object per event loop, used only on that loop's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/base/clock.h"
#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/store/cas/key_locks.h"

namespace headgate::store::cas {

// Identifies one state of a value. Only the adapter that made it knows its meaning. Every write of
// a value gives it another version. Versions may start again if a value is removed and made again;
// removal.h says when a value may be removed.
struct Version {
  uint64_t number = 0;
  bool operator==(const Version&) const = default;
};

struct Versioned {
  std::string bytes;
  Version version;
};

struct PutRequest {
  // The name and the bytes must stay valid only until Put returns.
  std::string_view name;
  // The new value. Empty: removes the value.
  std::optional<std::string_view> bytes;
  // The version to replace. Empty: the value must not exist.
  std::optional<Version> expected;
  // The value is not needed after this time, on the wall clock of the writers. For services that
  // remove such values by themselves. They must add kRemovalGrace (removal.h).
  base::Instant expires_at{0};
  base::BootTime deadline{0};
};

class VersionedStore {
 public:
  virtual ~VersionedStore() = default;

  // Both functions call `done` exactly once, on this loop's thread and at `deadline` at the latest
  // (plus a tick), possibly before they return. They never repeat a call by themselves.

  // The value, or nothing if there is none. Linearizable: it contains every Put that was answered
  // before Get was called, whichever machine did the Put. An adapter to a service whose reads may
  // be stale must exclude that.
  //
  // Unavailable, DeadlineExceeded: no answer. ResourceExhausted: the service is overloaded and asks
  // to slow down. PermissionDenied. Any other status is a failure too.
  using GetDone = std::function<void(absl::StatusOr<std::optional<Versioned>> answer)>;
  virtual void Get(std::string_view name, base::BootTime deadline, GetDone done) = 0;

  // Replaces the value if it has the expected version, and returns its new one.
  //
  // Aborted: it has another version. Unknown, DeadlineExceeded: it may have been replaced, or may
  // be replaced later. After all other statuses it has not been and will not be replaced.
  // Unavailable: not sent. ResourceExhausted: as for Get. OutOfRange: the value is too large for
  // the service.
  using PutDone = std::function<void(absl::StatusOr<Version> answer)>;
  virtual void Put(const PutRequest& request, PutDone done) = 0;

  // The service's clock, as far as calls have told it. Nothing: the service tells no time; then the
  // clock of this machine is used.
  virtual std::optional<base::Instant> TimeAt(base::BootTime /*now*/) const { return std::nullopt; }

  // Null if the service has no locks. Then requests that ask for a lock are decided without one.
  virtual KeyLocks* locks() { return nullptr; }
};

}  // namespace headgate::store::cas
