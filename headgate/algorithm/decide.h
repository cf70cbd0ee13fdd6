// The one question, for every algorithm: may a request of this cost pass now? And what else can
// happen to a bucket.
//
// Pure: no clock, lock, log or allocation. Not thread-safe for one bucket; the store sees to that.
// An instant earlier than the latest seen by a bucket counts as that. Definitions:
// docs/reference/algorithms.md.
#pragma once

#include "headgate/algorithm/bucket.h"
#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/fixed_window.h"
#include "headgate/algorithm/leaky_queue.h"
#include "headgate/algorithm/limit.h"
#include "headgate/algorithm/sliding_window_counter.h"
#include "headgate/algorithm/sliding_window_log.h"
#include "headgate/algorithm/token_bucket.h"
#include "headgate/base/status.h"

namespace headgate::algorithm {

// `hits` is touched by sliding_window_log alone. A denied request changes nothing but the latest
// seen time, unless the limit says count_denied.
inline Decision Decide(const Limit& limit, BucketState& state, HitLog& hits, Cost cost,
                       base::Instant now) {
  switch (limit.algorithm()) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
      return DecideTokenBucket(limit, state, cost, now);
    case Algorithm::kLeakyBucketQueue:
      return DecideLeakyQueue(limit, state, cost, now);
    case Algorithm::kFixedWindow:
      return DecideFixedWindow(limit, state, cost, now);
    case Algorithm::kSlidingWindowCounter:
      return DecideSlidingWindowCounter(limit, state, cost, now);
    case Algorithm::kSlidingWindowLog:
      return DecideSlidingWindowLog(limit, state, hits, cost, now);
  }
  __builtin_unreachable();
}

// Gives back at most what is still consumed, and answers as a look would afterwards.
// RefundRefused() unless TakesRefunds(limit.algorithm()).
absl::StatusOr<Decision> Refund(const Limit& limit, BucketState& state, HitLog& hits, Cost cost,
                                base::Instant now);

// FailedPrecondition, with the reason why the queue takes nothing back.
absl::Status RefundRefused();

// Makes the bucket as if never used: all zero.
void Reset(const Limit& limit, BucketState& state, HitLog& hits);

// The longest time that a used bucket takes to be full again (a window: to be over), if nothing
// comes.
base::Duration TimeToFull(const Limit& limit);

// From when on the bucket is full (a window: over) under `limit`, if nothing comes. A bucket that
// has had other limits before is as if never used only once their time is over too: see Change.
base::Instant FreshAt(const Limit& limit, const BucketState& state, const HitLog& hits);

// Makes a bucket whose times are ahead of `now`, because the clock was set back between two runs,
// one of `now` in which as much is left as was at its latest time. `remembered_until` keeps its
// distance from that time.
void Rebase(const Limit& limit, BucketState& state, HitLog& hits, base::Instant& remembered_until,
            base::Instant now);

// Carries a bucket from one limit to another at `now`; mints no allowance.
//
// `remembered_until` belongs to the bucket and changes here alone: by then it would have been full
// under each limit that it had before `from`, as it stood when that was replaced. Begins as 0. The
// bucket is as if never used once both this and FreshAt are over; then it may be forgotten.
//
// A bucket that is as if never used at `now` starts full: state, hits and `remembered_until` are
// cleared. Else, with algorithm and period kept, a token bucket keeps its tokens (at most the new
// burst), a queue its free_at, windows and the log their counts; otherwise the new bucket starts
// with the smaller of the old remaining and the new capacity. A token bucket of 0 requests holds no
// tokens. A state that is all zero is as if never used under any limit.
void Change(const Limit& from, const Limit& to, BucketState& state, HitLog& hits,
            base::Instant& remembered_until, base::Instant now);

}  // namespace headgate::algorithm
