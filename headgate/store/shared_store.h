// The contract of a store that several machines share: Redis, or a service that can compare and
// set. It answers asynchronously, and it can fail. Otherwise store.h applies: a store decides where
// algorithm::Decide runs, never what it computes.
//
// The store has its own clock. One object per event loop, used only on that loop's thread; all
// requests of one turn of the loop are sent together.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "headgate/algorithm/counter.h"
#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/lease.h"
#include "headgate/base/clock.h"
#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/permit/permit.h"
#include "headgate/store/limit_table.h"
#include "headgate/store/store.h"

namespace headgate::store {

using algorithm::LeaseAsk;
using algorithm::LeaseGrant;
using algorithm::LeaseId;
using algorithm::LeaseReport;

// How long a lease lives, unless it is tiny; the same for the whole fleet.
inline constexpr base::Duration kLeaseTtl = std::chrono::seconds(2);
// How long a tiny lease lives (limiter/lease/lease_sizing.h). No lease lives longer.
inline constexpr base::Duration kTinyLeaseTtl = 10 * kLeaseTtl;

struct SharedRequest {
  // The bucket's name in the store. Must stay valid only until Ask returns.
  std::string_view name;
  LimitHandle limit;
  algorithm::Cost cost = 1;
  Operation operation = Operation::kTake;
  base::Instant taken_at{0};  // only of kUndo: Decision::at of the take
  // If set, the message of a node with leases: its reports, a request of `lease->cost`, and the
  // wish for a lease; cost and operation are ignored. The answer has the decision and the grant.
  std::optional<LeaseAsk> lease{};
  // Whether leases of this bucket are ever granted. If so, nothing is decided about it while the
  // store may have forgotten leases that are still being spent.
  bool leased = false;
  // Decides under the bucket's existing limit, if the bucket exists, and does not carry it over to
  // `limit`. For requests that were admitted under a limit that may have changed since. Not for
  // leases.
  bool keeps_limit = false;
  // Asks for the lock of the key, so that instances decide about it one after the other. The time
  // in which it is answered is then the store's `lock_timeout`, not `timeout`. Ignored by stores
  // without locks.
  bool locked = false;
  base::Duration timeout{0};
  // As in TakeRequest; must stay valid until `done` is called.
  std::span<const LimitChange> history{};
  // The arrival time of the request on the clock of `history`. Needed only with a history.
  base::Instant now{0};
};

// Further events of the bucket, for counters.
struct SharedEvents {
  bool replaced_corrupt = false;  // the bucket was unreadable; only in a compare-and-set store
  bool clock_reset = false;       // the bucket's time was far ahead of the store's clock
  bool carried_over = false;      // the bucket was made under another limit
  bool operator==(const SharedEvents&) const = default;
};

struct SharedAnswer {
  // Unavailable: not done, because the store cannot do it. Cancelled: not done, because other
  // instances had the lock of the key for too long. DeadlineExceeded, Aborted: may have been done.
  // PermissionDenied: the store refuses access. FailedPrecondition: a refund to a queue.
  // ResourceExhausted: not done, because too many calls are in progress here, or other instances
  // write to the bucket all the time. OutOfRange: not done, because the bucket would be too large
  // for the store. DataLoss: not done, because the value under the name is damaged; a reset removes
  // it. Unimplemented: an invalid request, which is a bug in Headgate; not done.
  absl::Status status;
  algorithm::Decision decision;  // its `at` is set in answers to all requests
  LeaseGrant grant;
  SharedEvents events;
};

// A change of a counter (algorithm/counter.h). Counters are apart from buckets: they have no limit,
// and never leases.
struct SharedCount {
  // The counter's name in the store. Must stay valid only until Increment returns.
  std::string_view name;
  algorithm::CounterChange change{};
  base::Duration timeout{0};
};

// A request about the permits of a key (permit/permit.h). They are apart from buckets: they have no
// limit in the table of limits, and never leases.
struct SharedPermits {
  // The name of the permits in the store. Must stay valid only until AskPermits returns.
  std::string_view name;
  permit::Ask ask{};
  base::Duration timeout{0};
};

class SharedStore {
 public:
  using Done = std::function<void(const SharedAnswer& answer)>;

  virtual ~SharedStore() = default;

  // Calls `done` exactly once, on this loop's thread. If the store answers nothing, `done` is
  // called no later than `timeout` (for locked requests the store's lock_timeout) plus a tick.
  // While the store answers other calls, the wait may be longer (store/patience.h). Possibly before
  // Ask returns, if the store is known to be unreachable.
  virtual void Ask(const SharedRequest& request, Done done) = 0;

  // Changes a counter, at the time of the store's clock. Calls `done` as Ask does, with an answer
  // or one of the statuses of SharedAnswer. Unimplemented if this store has no counters.
  using CountDone = std::function<void(const absl::StatusOr<algorithm::CounterAnswer>& answer)>;
  virtual void Increment(const SharedCount& /*request*/, CountDone done) {
    done(absl::UnimplementedError("this store has no counters"));
  }

  // Acquires or releases a permit, at the time of the store's clock. Calls `done` as Ask does, with
  // an answer or one of the statuses of SharedAnswer. Unimplemented if this store has no permits.
  using PermitsDone = std::function<void(const absl::StatusOr<permit::Answer>& answer)>;
  virtual void AskPermits(const SharedPermits& /*request*/, PermitsDone done) {
    done(absl::UnimplementedError("this store has no permits"));
  }

  // The clock for timeouts and leases: CLOCK_BOOTTIME of this machine.
  virtual base::BootTime Now() const = 0;

  // The number of instances that share this store, as last reported; 1 if nothing was reported.
  virtual uint32_t instances() const = 0;

  virtual LimitTable& limits() = 0;
};

}  // namespace headgate::store
