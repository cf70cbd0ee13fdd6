#include "headgate/algorithm/leaky_queue.h"

#include "headgate/algorithm/token_bucket.h"

namespace headgate::algorithm {
namespace {

// The number of requests of cost 1 that the queue still accepts if the next one has to wait for
// `wait`.
uint64_t RoomFor(const Limit& limit, ExactSpan wait) {
  const ExactSpan span = SpanOf(limit);
  if (wait > span) return 0;
  return WholeIntervals(limit, Difference(span, wait, limit.requests())) + 1;
}

}  // namespace

Decision DecideLeakyQueue(const Limit& limit, BucketState& state, Cost cost, base::Instant now) {
  if (limit.denies_all()) return DenyAll(limit, cost);
  now = std::max(now, state.seen);
  state.seen = now;
  const uint32_t n = limit.requests();
  const ExactSpan wait = Ahead(state, now);
  Decision decision{
      .limit = limit.capacity(), .remaining = RoomFor(limit, wait), .reset_after = RoundUp(wait)};
  // Admitted requests never make the wait longer than this; only charges do.
  decision.overdrawn = wait > Sum(SpanOf(limit), IntervalOf(limit), n);
  if (cost == 0) return decision;
  if (cost - 1 > limit.capacity()) {
    decision.allowed = false;
    decision.retry_after = kNever;
    return decision;
  }
  const ExactSpan last_start = Sum(wait, Price(limit, cost - 1), n);
  if (last_start > SpanOf(limit)) {
    decision.allowed = false;
    decision.retry_after = RoundUp(Difference(last_start, SpanOf(limit), n));
    return decision;
  }
  const ExactSpan wait_after = Sum(last_start, IntervalOf(limit), n);
  SetAhead(state, now, wait_after);
  decision.remaining = RoomFor(limit, wait_after);
  decision.reset_after = RoundUp(wait_after);
  decision.wait = RoundUp(wait);
  return decision;
}

}  // namespace headgate::algorithm
