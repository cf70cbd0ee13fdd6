// Decide() answers, for every algorithm: may a request of this cost pass now? The other functions
// change a bucket in other ways.
//
// Pure: no clock, lock, log or allocation. Not thread-safe for one bucket; the store takes care of
// that. An instant earlier than the latest one seen by a bucket is treated as that latest one.
// Definitions: docs/reference/algorithms.md.
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

// As Decide, but without the blocks of the limit: the algorithm alone.
inline Decision DecideUnblocked(const Limit& limit, BucketState& state, HitLog& hits, Cost cost,
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

Decision DecideBlocking(const Limit& limit, BucketState& state, HitLog& hits, Cost cost,
                        base::Instant now);

// Only sliding_window_log uses `hits`. A denied request changes only the latest seen time, unless
// the limit has count_denied, or a block begins with it (block.h).
inline Decision Decide(const Limit& limit, BucketState& state, HitLog& hits, Cost cost,
                       base::Instant now) {
  if (limit.blocks()) [[unlikely]]
    return DecideBlocking(limit, state, hits, cost, now);
  return DecideUnblocked(limit, state, hits, cost, now);
}

// The answer to a request that only asks whether it would pass: as Decide, but no block begins. The
// caller must undo the take.
Decision Peek(const Limit& limit, BucketState& state, HitLog& hits, Cost cost, base::Instant now);

// Gives back `cost`, but at most the amount that is still consumed. Returns the decision that a
// request of cost 0 would get afterwards. Returns RefundRefused() unless
// TakesRefunds(limit.algorithm()).
absl::StatusOr<Decision> Refund(const Limit& limit, BucketState& state, HitLog& hits, Cost cost,
                                base::Instant now);

// Takes the whole cost, whether or not it would be allowed: the bucket may become overdrawn.
// Returns the decision that a request of cost 0 would get afterwards.
Decision Charge(const Limit& limit, BucketState& state, HitLog& hits, Cost cost, base::Instant now);

// Undoes a take or charge of this cost at `taken_at`. The part that has come back by itself since
// then is not given back again. It changes nothing in a window that has begun since. Returns the
// decision that a request of cost 0 would get afterwards, or RefundRefused() as Refund does.
absl::StatusOr<Decision> Undo(const Limit& limit, BucketState& state, HitLog& hits, Cost cost,
                              base::Instant taken_at, base::Instant now);

// FailedPrecondition, with the reason why a queue accepts no refunds.
absl::Status RefundRefused();

// Sets the bucket to all zero, so that it is fresh.
void Reset(const Limit& limit, BucketState& state, HitLog& hits);

// The longest time that a used bucket takes to be full again (for a window: to end) without further
// requests.
base::Duration TimeToFull(const Limit& limit);

// The time at which the bucket is full (for a window: over) under `limit` without further requests.
// From then on the bucket is *fresh*: it decides like one that was never used. A bucket that had
// other limits before is fresh only when their time is over too: see Change. One with a block also
// has to be kept until MattersUntil(limit, state).
base::Instant FreshAt(const Limit& limit, const BucketState& state, const HitLog& hits);

// Until when the last block matters to a bucket that is otherwise fresh.
base::Instant MattersUntil(const Limit& limit, const BucketState& state);

// Handles a clock that was set back between two runs: if the bucket's times are ahead of `now`,
// moves them back to `now`. As much is left at `now` as was left at the bucket's latest time.
// `remembered_until` keeps its distance from that time. A bucket that is overdrawn has nothing left
// afterwards, and is not overdrawn.
void Rebase(const Limit& limit, BucketState& state, HitLog& hits, RememberedUntil& remembered_until,
            base::Instant now);

// Moves a bucket from one limit to another at `now`. Never creates allowance.
//
// `remembered_until` belongs to the bucket, starts as 0, and only Change and Rebase modify it. It
// is the time by which the bucket would have been full under each limit it had before `from`, given
// its state when that limit was replaced. The bucket is fresh, and may be forgotten, once both this
// time and FreshAt have passed.
//
// A bucket that is fresh at `now` starts full: state, hits and `remembered_until` are cleared.
// Otherwise, if algorithm and period stay the same, a token bucket keeps its tokens (at most the
// new burst), a queue its free_at, and windows and the log their counts. In all other cases the new
// bucket starts with the smaller of the old remaining and the new capacity. The counts of a window
// or a log then lack earlier use, so a raise of their limit is such a change too, as long as the
// bucket is not full under the earlier limits (RememberedUntil). A token bucket of 0 requests holds
// no tokens. A state of all zero is fresh under any limit.
//
// A block stays, but not for longer than `to` says; if `to` has none, it ends.
void Change(const Limit& from, const Limit& to, BucketState& state, HitLog& hits,
            RememberedUntil& remembered_until, base::Instant now);

}  // namespace headgate::algorithm
