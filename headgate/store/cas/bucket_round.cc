#include "headgate/store/cas/bucket_round.h"

#include <algorithm>
#include <utility>

#include "headgate/algorithm/decide.h"
#include "headgate/algorithm/lease.h"
#include "headgate/store/limit_history.h"

namespace headgate::store::cas {
namespace {

using algorithm::BucketState;
using algorithm::Decision;
using algorithm::KeepsLeases;
using algorithm::Limit;
using base::Duration;
using base::Instant;

// A stored time this far ahead of the clock is not jitter.
constexpr Duration kAheadLeast = std::chrono::seconds(1);

bool Looks(const SharedRequest& request) {
  return !request.lease && OnlyLooks(request.operation, request.cost);
}

Duration AheadMost(const Limit& limit, const RoundOptions& options) {
  if (options.ahead_most) return *options.ahead_most;
  // The time of a queue or log that was made from a bucket with leases is the end of the last
  // lease, so it may be this far ahead.
  return std::max(kAheadLeast, TimeToFull(limit)) +
         (KeepsLeases(limit.algorithm()) ? Duration(0) : options.lease_ttl_most);
}

// Moves the bucket back to `now`, with as much left as at its latest time.
void SetBack(StoredBucket& bucket, Instant now) {
  BucketState& state = bucket.state;
  if (KeepsLeases(bucket.limit.algorithm()))
    return SetBackLeased(bucket.limit, state, bucket.leases, bucket.remembered_until, now);
  const Duration back = state.seen - now;
  if (bucket.limit.algorithm() == algorithm::Algorithm::kSlidingWindowLog) {
    bucket.hits = {};
    if (state.count > 0) bucket.hits.Append({now, state.count});
  } else {
    const auto back_ns = static_cast<uint64_t>(back.count());
    if (state.edge < back_ns) state.count = 0;
    state.edge -= std::min(state.edge, back_ns);
  }
  bucket.remembered_until.ns = std::max<int64_t>(0, (bucket.remembered_until - back).ns);
  state.block = algorithm::SetBack(state.block, back);
  state.seen = now;
}

// Sets the bucket back if it is too far ahead of the clock. Returns whether it did.
bool SetTheClock(StoredBucket& bucket, Instant clock, const RoundOptions& options) {
  const bool far = bucket.state.seen - clock > AheadMost(bucket.limit, options);
  if (far) SetBack(bucket, clock);
  if (bucket.remembered_until <= std::max(clock, bucket.state.seen)) bucket.remembered_until = {};
  return far;
}

// Whether a bucket of this limit, as it is stored, may be used as it is.
bool IsUpToDate(const StoredBucket& bucket, const Limit& limit, const LimitHistory& history,
                Instant clock) {
  return bucket.limit.spec() == limit.spec() && bucket.state.seen > clock - history.replaced_ago();
}

// If a request that keeps the bucket's limit finds a bucket of another limit, the bucket's limit
// decides.
const Limit& LimitOf(const SharedRequest& request, const std::optional<StoredBucket>& bucket) {
  const bool keeps = request.keeps_limit && !request.lease && bucket && !bucket->limit.denies_all();
  return keeps ? bucket->limit : request.limit->limit;
}

Instant ClockOf(const SharedRequest& request, const LimitHistory& history, Instant now) {
  return history.asked_at() == request.now ? now : now + Duration(1);
}

Instant FreshAtOf(const StoredBucket& bucket, Instant now) {
  return KeepsLeases(bucket.limit.algorithm())
             ? KeptUntil(bucket.limit, bucket.state, bucket.leases, now)
             : FreshAt(bucket.limit, bucket.state, bucket.hits);
}

absl::StatusOr<Decision> GiveBack(const SharedRequest& request, const Limit& limit, Instant now,
                                  StoredBucket& bucket) {
  const algorithm::Cost cost = request.cost;
  if (request.operation == Operation::kUndo) {
    if (!KeepsLeases(limit.algorithm()))
      return Undo(limit, bucket.state, bucket.hits, cost, request.taken_at, now);
    return UndoLeased(limit, bucket.state, bucket.leases, cost, request.taken_at, now);
  }
  if (!KeepsLeases(limit.algorithm())) return Refund(limit, bucket.state, bucket.hits, cost, now);
  return RefundLeased(limit, bucket.state, bucket.leases, cost, now);
}

}  // namespace

BucketRound::BucketRound(std::optional<std::string_view> bucket, Instant now,
                         const RoundOptions& options)
    : now_(base::Clamp(now)), options_(options) {
  if (bucket && bucket->empty()) return;
  if (bucket) bucket_ = ParseBucket(*bucket);
  unreadable_ = !bucket_;
}

SharedAnswer BucketRound::Answer(const SharedRequest& request) {
  if (!request.lease && request.operation == Operation::kReset) return Reset(request);
  const Limit limit = LimitOf(request, bucket_);
  const LimitHistory history(request.history, request.limit->limit, request.now);
  const Instant clock = ClockOf(request, history, now_);
  if (Looks(request)) return Peek(request, clock);

  SharedAnswer answer;
  const bool was_there = bucket_ || unreadable_;
  answer.events.replaced_corrupt = std::exchange(unreadable_, false);
  if (!bucket_) {
    bucket_ = StoredBucket{.limit = limit};
  } else if (!IsUpToDate(*bucket_, limit, history, clock)) {
    history.CarryOver(limit, clock, *bucket_);
    answer.events.carried_over = true;
  }
  answer.events.clock_reset = SetTheClock(*bucket_, clock, options_);
  const Instant now = std::max(clock, bucket_->state.seen);
  if (KeepsLeases(limit.algorithm())) ExpireLeases(limit, bucket_->state, bucket_->leases, now);
  Changes changes = Do(request, limit, now, answer);
  answer.decision.at = now;
  if (answer.events.carried_over || answer.events.clock_reset) changes = Changes::kState;
  EndRequest(now);
  if (was_there || bucket_) NoteChange(changes);
  return answer;
}

SharedAnswer BucketRound::Reset(const SharedRequest& request) {
  if (bucket_ || unreadable_) NoteChange(Changes::kState);
  bucket_.reset();
  unreadable_ = false;
  SharedAnswer answer;
  BucketState state;
  HitList hits;
  answer.decision = Decide(request.limit->limit, state, hits, 0, now_);
  answer.decision.at = now_;
  return answer;
}

SharedAnswer BucketRound::Peek(const SharedRequest& request, Instant clock) const {
  const Limit limit = LimitOf(request, bucket_);
  const LimitHistory history(request.history, request.limit->limit, request.now);
  SharedAnswer answer;
  answer.events.replaced_corrupt = unreadable_;
  StoredBucket copy = bucket_ ? *bucket_ : StoredBucket{.limit = limit};
  if (bucket_ && !IsUpToDate(copy, limit, history, clock)) {
    history.CarryOver(limit, clock, copy);
    answer.events.carried_over = true;
  } else {
    answer.events.clock_reset = SetTheClock(copy, clock, options_);
  }
  const Instant now = std::max(clock, copy.state.seen);
  if (KeepsLeases(limit.algorithm())) ExpireLeases(limit, copy.state, copy.leases, now);
  const algorithm::Cost cost = AsksToPass(request.operation) ? request.cost : 0;
  answer.decision = algorithm::Peek(limit, copy.state, copy.hits, cost, now);
  answer.decision.at = now;
  return answer;
}

// Carries out the request. The bucket belongs to `limit`, and only live leases are left.
Changes BucketRound::Do(const SharedRequest& request, const Limit& limit, Instant now,
                        SharedAnswer& answer) {
  StoredBucket& bucket = *bucket_;
  BucketState& state = bucket.state;
  const BucketState before = state;
  const auto is_same = [&] { return before.edge == state.edge && before.count == state.count; };
  if (request.lease) {
    const algorithm::Leases leases_before = bucket.leases;
    LeaseAsk ask = *request.lease;
    ask.ttl = std::min(ask.ttl, options_.lease_ttl_most);
    answer.decision = AskLease(limit, state, bucket.leases, ask, now, answer.grant);
    return is_same() && leases_before == bucket.leases ? Changes::kTime : Changes::kState;
  }
  if (GivesBack(request.operation)) {
    // If the request keeps the bucket's limit, the bucket may be a queue, which accepts no refund.
    const absl::StatusOr<Decision> given = GiveBack(request, limit, now, bucket);
    answer.status = given.status();
    if (given.ok()) answer.decision = *given;
    return is_same() ? Changes::kTime : Changes::kState;
  }
  if (request.operation == Operation::kCharge) {
    answer.decision = KeepsLeases(limit.algorithm())
                          ? ChargeLeased(limit, state, bucket.leases, request.cost, now)
                          : Charge(limit, state, bucket.hits, request.cost, now);
    return Changes::kState;
  }
  answer.decision = Decide(limit, state, bucket.hits, request.cost, now);
  const bool counted = answer.decision.allowed || limit.spec().count_denied;
  return counted || before.block != state.block ? Changes::kState : Changes::kTime;
}

void BucketRound::NoteChange(Changes changes) { changes_ = std::max(changes_, changes); }

// A fresh bucket is not stored.
void BucketRound::EndRequest(Instant now) {
  BucketState& state = bucket_->state;
  state.seen = now;
  const Instant fresh_at = FreshAtOf(*bucket_, now);
  // Full, but not yet fresh under its earlier limits.
  if (fresh_at <= now && IsTokenBucket(bucket_->limit.algorithm()))
    state = {.edge = static_cast<uint64_t>(now.ns), .seen = now, .count = 0, .block = state.block};
  expires_at_ =
      std::max<base::Instant>({fresh_at, bucket_->remembered_until, MarkedUntil(bucket_->leases)});
  expires_at_ = std::max(expires_at_, MattersUntil(bucket_->limit, state));
  if (expires_at_ <= now) bucket_.reset();
}

std::string BucketRound::bytes() const {
  std::string bytes;
  if (bucket_) AppendBucket(*bucket_, bytes);
  return bytes;
}

}  // namespace headgate::store::cas
