// The contract of a store that several machines share: Redis, later ZooKeeper and DynamoDB. It
// answers later, and it can fail; everything else is as in store.h: a store decides where
// algorithm::Decide runs, never what it computes.
//
// Time is the store's own. One object per event loop, used on that loop's thread alone; what it
// asks in one turn of the loop travels together.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/lease.h"
#include "headgate/base/clock.h"
#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/store/limit_table.h"
#include "headgate/store/store.h"

namespace headgate::store {

using algorithm::LeaseAsk;
using algorithm::LeaseGrant;
using algorithm::LeaseId;
using algorithm::LeaseReport;

// The longest life of a lease, the same for the whole fleet.
inline constexpr base::Duration kLeaseTtl = std::chrono::seconds(2);

struct SharedRequest {
  // The bucket's name in the store; used before Ask returns only.
  std::string_view name;
  LimitHandle limit;
  algorithm::Cost cost = 1;
  Operation operation = Operation::kTake;
  // Set: asks for a lease instead of a decision, or reports; cost and operation are ignored.
  std::optional<LeaseAsk> lease{};
  // Whether leases are ever given of this bucket: then nothing is decided about it while the store
  // may have forgotten some that are being spent.
  bool leased = false;
  // Decides under the limit that the bucket has, if it is there, and does not carry it over to
  // `limit`: for what was let through under a limit that may have changed since. Not for leases.
  bool keeps_limit = false;
  base::Duration timeout{0};
  // As in a TakeRequest; valid until `done` has been called.
  std::span<const LimitChange> history{};
  // When the request came, on the clock of `history`. Needed only with a history.
  base::Instant now{0};
};

// What happened to the bucket besides, for counters.
struct SharedEvents {
  bool replaced_corrupt = false;  // it held what is not ours, or cannot be read
  bool clock_reset = false;       // its time was far ahead of the store's clock
  bool carried_over = false;      // it was made under another limit
  bool operator==(const SharedEvents&) const = default;
};

struct SharedAnswer {
  // Unavailable: not done, and the store cannot. DeadlineExceeded, Aborted: it may have been done.
  // PermissionDenied: the store refuses us. FailedPrecondition: a refund to a queue.
  // ResourceExhausted: too much under way here; not sent. Unimplemented: it was asked wrongly, a
  // bug of ours; not done.
  absl::Status status;
  algorithm::Decision decision;
  LeaseGrant grant;
  SharedEvents events;
};

class SharedStore {
 public:
  using Done = std::function<void(const SharedAnswer& answer)>;

  virtual ~SharedStore() = default;

  // Calls `done` exactly once, on this loop's thread and no later than `timeout` (and a tick):
  // perhaps before it returns, where the store is known to be away.
  virtual void Ask(const SharedRequest& request, Done done) = 0;

  // The clock that timeouts and leases are counted by: CLOCK_BOOTTIME of this machine.
  virtual base::BootTime Now() const = 0;

  // How many instances share this store, by what was last heard; 1 where nothing was.
  virtual uint32_t instances() const = 0;

  virtual LimitTable& limits() = 0;
};

}  // namespace headgate::store
