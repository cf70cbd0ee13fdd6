#include "headgate/store/cas/key_exchange.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/store/cas/permit_round.h"
#include "headgate/store/cas/removal.h"

namespace headgate::store::cas {

using base::BootTime;
using base::Duration;
using base::Instant;

namespace {

bool IsLocked(const std::unique_ptr<WaitingRequest>& request) { return request->request.locked; }

// One key has either a bucket or permits, because their names differ.
absl::Status OtherKind() {
  return absl::UnimplementedError("a bucket and permits have the same name");
}

bool MayHaveBeenApplied(const absl::Status& status) {
  return absl::IsUnknown(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

void KeyExchange::Add(std::unique_ptr<WaitingRequest> request) {
  earliest_deadline_ = std::min(earliest_deadline_, request->deadline);
  waiting_.push_back(std::move(request));
}

ExchangeAction KeyExchange::Next(BootTime now, Instant instant) {
  if (now >= earliest_deadline_) Expire(now);
  if (MustUnlock(now)) {
    lock_ = Lock::kNone;
    return {.kind = ExchangeAction::Kind::kUnlock};
  }
  const ExchangeAction action = NextRound(now, instant);
  if (action.kind != ExchangeAction::Kind::kWait) return action;
  // The round may have ended because all of its requests have expired.
  if (MustUnlock(now)) return Next(now, instant);
  if (lock_ == Lock::kNone && std::any_of(waiting_.begin(), waiting_.end(), IsLocked)) {
    lock_ = Lock::kAsked;
    return {.kind = ExchangeAction::Kind::kLock};
  }
  return action;
}

ExchangeAction KeyExchange::NextRound(BootTime now, Instant instant) {
  while (in_flight_ == InFlight::kNone && requests() > 0 && now >= pause_until_) {
    if (put_ && !round_.empty()) return put_->again ? StartPut(now) : StartGet(now);
    if (std::exchange(put_, std::nullopt)) {
      // No request waits for the put's outcome any more, so the value is unknown.
      known_.reset();
      fresh_ = false;
    }
    if (lock_ != Lock::kHeld) LeaveLockedRequests();
    if (round_.empty()) fresh_ = false;
    if (!fresh_) JoinWaiting();
    if (round_.empty()) break;  // all requests wait for the lock
    if (known_ && IsFenced()) {
      lock_ = Lock::kStale;
      writer_.counters.locks_lost.Add();
      CountLoss();
      continue;
    }
    if (!known_ || IsTooOld(now)) return StartGet(now);
    if (IsDamaged()) {
      // Somebody may have repaired the value, so read it again.
      if (!fresh_) return StartGet(now);
      FailOfDamagedValue();
      if (round_.empty()) {
        known_.reset();
        continue;
      }
    }
    if (Decide(instant) == Changes::kState) return StartPut(now);
    if (!fresh_) return StartGet(now);
    AnswerRound();
  }
  return Wait(now);
}

// Whether the lock must be given back: no request needs it, it was held for long enough, or it is
// not valid any more.
bool KeyExchange::MustUnlock(BootTime now) const {
  if (lock_ == Lock::kNone) return false;
  if (lock_ == Lock::kStale) return true;
  if (std::any_of(round_.begin(), round_.end(), IsLocked)) return false;
  if (std::none_of(waiting_.begin(), waiting_.end(), IsLocked)) return true;
  return lock_ == Lock::kHeld && now - held_since_ >= writer_.options.lock_hold_max;
}

// Whether the value was written under a later lock than the one that is held.
bool KeyExchange::IsFenced() const {
  return lock_ == Lock::kHeld && known_->envelope && known_->envelope->fence > fence_;
}

// Moves the locked requests of the round back to the waiting ones.
void KeyExchange::LeaveLockedRequests() {
  const auto locked = std::stable_partition(round_.begin(), round_.end(),
                                            [](const auto& request) { return !IsLocked(request); });
  waiting_.insert(waiting_.begin(), std::make_move_iterator(locked),
                  std::make_move_iterator(round_.end()));
  round_.erase(locked, round_.end());
}

void KeyExchange::OnLock(BootTime now, const absl::StatusOr<uint64_t>& fence) {
  if (fence.ok()) {
    HEADGATE_CHECK(lock_ == Lock::kAsked);
    lock_ = Lock::kHeld;
    fence_ = *fence;
    held_since_ = now;
    writer_.counters.locks_taken.Add();
    // Another instance has probably written since.
    known_.reset();
    fresh_ = false;
    return;
  }
  // A write that is in flight, or whose answer was lost, still counts if it was applied.
  if (std::exchange(lock_, Lock::kNone) != Lock::kAsked) return writer_.counters.locks_lost.Add();
  for (auto& request : waiting_) {
    if (!IsLocked(request)) continue;
    if (absl::IsUnavailable(fence.status())) writer_.counters.unavailable.Add();
    Fail(std::move(request), fence.status());
  }
  std::erase(waiting_, nullptr);
}

ExchangeAction KeyExchange::Wait(BootTime now) const {
  const bool pauses = in_flight_ == InFlight::kNone && requests() > 0 && now < pause_until_;
  return {.at = pauses ? std::min(pause_until_, earliest_deadline_) : earliest_deadline_};
}

ExchangeAction KeyExchange::StartGet(BootTime now) {
  in_flight_ = InFlight::kGet;
  call_sent_at_ = now;
  writer_.counters.reads.Add();
  return {.kind = ExchangeAction::Kind::kGet, .at = CallDeadline(now)};
}

ExchangeAction KeyExchange::StartPut(BootTime now) {
  in_flight_ = InFlight::kPut;
  call_sent_at_ = now;
  writer_.counters.writes.Add();
  return {.kind = ExchangeAction::Kind::kPut,
          .at = CallDeadline(now),
          .bytes = put_->bytes,
          .expected = put_->before.version,
          .expires_at = put_->envelope.expires_at};
}

// Half of the remaining time, so that the other half remains for the next call: a put after a get,
// or a get that finds out whether a put was applied.
BootTime KeyExchange::CallDeadline(BootTime now) const {
  BootTime latest = now;
  for (const auto& request : round_) latest = std::max(latest, request->deadline);
  // The long time of locked requests is for the lock, not for a service that does not answer.
  if (std::any_of(round_.begin(), round_.end(), IsLocked))
    latest = std::min(latest, now + writer_.options.timeout);
  return now + (latest - now) / 2;
}

bool KeyExchange::IsTooOld(BootTime now) const { return now - known_->asked_at > kVersionAgeMax; }

void KeyExchange::JoinWaiting() {
  const auto joins = [this](const auto& request) {
    return lock_ == Lock::kHeld || !IsLocked(request);
  };
  const auto rest = std::stable_partition(waiting_.begin(), waiting_.end(), joins);
  round_.insert(round_.end(), std::make_move_iterator(waiting_.begin()),
                std::make_move_iterator(rest));
  waiting_.erase(waiting_.begin(), rest);
}

Changes KeyExchange::Decide(Instant instant) {
  std::optional<std::string_view> bucket = "";
  if (known_->envelope) {
    bucket = known_->envelope->bucket;
  } else if (known_->version) {
    bucket.reset();
  }
  if (round_.front()->permit) return DecidePermits(bucket, instant);
  BucketRound round(bucket, instant, writer_.options.round);
  for (const auto& request : round_) {
    if (request->permit) {
      request->answer.status = OtherKind();
    } else {
      request->answer = round.Answer(request->request);
    }
  }
  if (round.changes() == Changes::kState) MakePut(round.bytes(), round.expires_at());
  return round.changes();
}

Changes KeyExchange::DecidePermits(std::optional<std::string_view> bytes, Instant instant) {
  PermitRound round(bytes, instant);
  for (const auto& request : round_) {
    request->answer = {};
    if (request->permit) {
      request->permit_answer = round.Answer(*request->permit);
    } else {
      request->answer.status = OtherKind();
    }
  }
  round_.front()->answer.events.replaced_corrupt = round.has_replaced_corrupt();
  if (!round.has_changed()) return Changes::kNothing;
  MakePut(round.bytes(), round.expires_at());
  return Changes::kState;
}

void KeyExchange::MakePut(std::string bytes, Instant expires_at) {
  put_ = Put{.id = {.writer = writer_.id, .number = ++writer_.number},
             .before = *known_,
             .envelope = {},
             .bytes = {}};
  Envelope& next = put_->envelope;
  if (known_->envelope) {
    next.generation = known_->envelope->generation;
    next.writes = known_->envelope->writes;
    next.fence = known_->envelope->fence;
  } else {
    next.generation = writer_.random.Next();
  }
  if (lock_ == Lock::kHeld) next.fence = std::max(next.fence, fence_);
  AddWrite(put_->id, next.writes);
  next.expires_at = expires_at;
  next.bucket = std::move(bytes);
  AppendEnvelope(next, put_->bytes);
}

KeyExchange::Known KeyExchange::KnownOf(std::optional<Versioned> found) const {
  Known known{.version = std::nullopt, .envelope = std::nullopt, .asked_at = call_sent_at_};
  if (!found) return known;
  known.version = found->version;
  known.envelope = ParseEnvelope(found->bytes);
  return known;
}

void KeyExchange::OnGot(BootTime now, absl::StatusOr<std::optional<Versioned>> answer) {
  HEADGATE_CHECK(in_flight_ == InFlight::kGet);
  in_flight_ = InFlight::kNone;
  if (put_) {
    // The outcome of a put is asked for until the requests give up.
    if (!answer.ok()) return Pause(now);
    return Resolve(now, KnownOf(*std::move(answer)));
  }
  if (answer.ok()) {
    known_ = KnownOf(*std::move(answer));
    fresh_ = true;
    return;
  }
  known_.reset();
  if (absl::IsResourceExhausted(answer.status())) return OnRefused(now);
  // Nothing was written.
  FailRound(MayHaveBeenApplied(answer.status()) ? absl::UnavailableError(answer.status().message())
                                                : answer.status());
}

void KeyExchange::OnPut(BootTime now, const absl::StatusOr<Version>& answer) {
  HEADGATE_CHECK(in_flight_ == InFlight::kPut && put_);
  in_flight_ = InFlight::kNone;
  put_->again = false;
  if (answer.ok()) {
    known_ = {.version = *answer, .envelope = std::move(put_->envelope), .asked_at = call_sent_at_};
    put_.reset();
    return AnswerRound();
  }
  const absl::Status& status = answer.status();
  if (MayHaveBeenApplied(status)) {
    writer_.counters.ambiguous.Add();
    put_->repeats = true;
    return Pause(now);
  }
  if (put_->repeats) {
    // The put may have lost against its own earlier attempt.
    if (!absl::IsAborted(status)) Pause(now);
    return;
  }
  put_.reset();
  // The refused put has not changed the value, so it is not read again.
  if (absl::IsResourceExhausted(status)) return OnRefused(now);
  known_.reset();
  fresh_ = false;
  if (absl::IsAborted(status)) {
    writer_.counters.conflicts.Add();
    CountLoss();
    return Pause(now);
  }
  FailRound(status);
}

// The service asks to slow down.
void KeyExchange::OnRefused(BootTime now) {
  writer_.counters.throttled.Add();
  CountLoss();
  Pause(now);
}

// Decides by the value that was read whether our earlier put was applied.
void KeyExchange::Resolve(BootTime now, Known found) {
  const Known& before = put_->before;
  const bool same_generation = found.envelope && before.envelope
                                   ? found.envelope->generation == before.envelope->generation
                                   : found.envelope.has_value() == before.envelope.has_value();
  if (found.version == before.version && same_generation) {
    // The put is not applied yet, so send it again: only one of the two attempts can succeed.
    writer_.counters.ambiguous_repeated.Add();
    put_->again = true;
    put_->before.asked_at = found.asked_at;
    return Pause(now);
  }
  WriteFate fate = WriteFate::kUnknown;
  if (found.envelope) {
    const uint64_t generation = found.envelope->generation;
    if (!before.envelope) {
      // Only our put can have created a value with this random generation.
      fate = generation == put_->envelope.generation ? WriteFate::kApplied : WriteFate::kNotApplied;
    } else if (generation == before.envelope->generation) {
      fate = FateOf(put_->id, before.envelope->writes, found.envelope->writes);
    }
  }
  put_.reset();
  known_ = std::move(found);
  fresh_ = fate == WriteFate::kNotApplied;
  switch (fate) {
    case WriteFate::kApplied:
      writer_.counters.ambiguous_applied.Add();
      return AnswerRound();
    case WriteFate::kNotApplied:
      writer_.counters.conflicts.Add();
      return CountLoss();
    case WriteFate::kUnknown:
      writer_.counters.ambiguous_forgotten.Add();
      return FailRound(absl::AbortedError(
          "the answer to a write was lost, and the value does not tell whether it was applied"));
  }
}

void KeyExchange::Pause(BootTime now) {
  const CasOptions& options = writer_.options;
  Duration longest = options.pause_min;
  for (uint32_t i = 0; i < pauses_ && longest < options.pause_max; ++i) longest *= 2;
  longest = std::min(longest, options.pause_max);
  ++pauses_;
  pause_until_ = now + Duration(static_cast<int64_t>(
                           writer_.random.Below(static_cast<uint64_t>(longest.count()) + 1)));
}

size_t KeyExchange::remembered_bytes() const {
  if (!known_ || !known_->envelope) return known_ ? 1 : 0;
  return 128 + known_->envelope->bucket.size();
}

}  // namespace headgate::store::cas
