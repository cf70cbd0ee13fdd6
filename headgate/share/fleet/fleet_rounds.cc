#include "headgate/share/fleet/fleet_rounds.h"

#include <algorithm>
#include <utility>

#include "headgate/algorithm/fair_share_state.h"

namespace headgate::share::fleet {

using algorithm::FairShareOptions;
using algorithm::FairSharePool;
using base::BootTime;
using base::Duration;
using base::Instant;
using store::cas::Envelope;
using store::cas::Version;
using store::cas::Versioned;
using store::cas::WriteFate;

namespace {

constexpr BootTime kNever{INT64_MAX};
// Pauses are drawn from [0, kLossPause · 2^n], so that instances do not meet again.
constexpr Duration kLossPause = std::chrono::milliseconds(1);
constexpr Duration kLossPauseMax = std::chrono::milliseconds(20);
constexpr Duration kFailurePause = std::chrono::milliseconds(20);
constexpr Duration kFailurePauseMax = std::chrono::milliseconds(500);

Duration Grown(Duration first, uint32_t times, Duration most) {
  return std::min(first * (int64_t{1} << std::min(times, 10u)), most);
}

bool MayHaveBeenWritten(const absl::Status& status) {
  return absl::IsUnknown(status) || absl::IsDeadlineExceeded(status) || absl::IsAborted(status);
}

// The options with their defaults filled in, as FairSharePool keeps them.
FairShareOptions Complete(FairShareOptions options) {
  if (options.minimum_cycle.count() == 0) options.minimum_cycle = options.cycle / 10;
  return options;
}

}  // namespace

FleetRounds::FleetRounds(FleetPool& pool, store::cas::VersionedStore& service,
                         const base::DisciplinedClock& clock, const FleetOptions& options,
                         FleetListener listener, std::function<void()> set_timer)
    : pool_(pool),
      service_(service),
      clock_(clock),
      options_(options),
      listener_(std::move(listener)),
      set_timer_(std::move(set_timer)),
      name_(ValueName(options.pool)),
      random_(options.seed),
      writer_(random_.Next()),
      settings_(Complete(options.settings)),
      look_after_(
          static_cast<int64_t>(random_.Below(static_cast<uint64_t>(options.pace.count()) + 1))),
      self_(std::make_shared<FleetRounds*>(this)) {}

FleetRounds::~FleetRounds() { *self_ = nullptr; }

// ---- When

Duration FleetRounds::Gap() const {
  const uint32_t instances = options_.instances ? options_.instances() : 1;
  return std::chrono::seconds(1) * int64_t{std::max(1u, instances)} / kFleetRoundsPerSecond;
}

BootTime FleetRounds::DueAt(BootTime now) {
  if (put_) return now;
  const Instant instant = clock_.Now();
  const FleetPool::Plan plan = pool_.PlanRound(instant);
  const BootTime soonest = begun_ + Gap();
  switch (plan.urgency) {
    case FleetPool::Urgency::kNone:
      if (!plan.cycle_end) return kNever;
      return std::max(soonest, now + (*plan.cycle_end - instant) + look_after_);
    case FleetPool::Urgency::kAtOnce:
      return soonest;
    case FleetPool::Urgency::kPaced:
      break;
  }
  BootTime due = std::max(soonest, begun_ + options_.pace);
  // The demands of a cycle are reported as soon as it has ended.
  if (plan.cycle_end) due = std::min(due, now + (*plan.cycle_end - instant));
  return std::max(due, soonest);
}

void FleetRounds::WakeAt(BootTime at) {
  if (std::exchange(wake_, at) != at) set_timer_();
}

void FleetRounds::Step() {
  if (is_calling_) return;
  const BootTime now = Now();
  if (now < pause_until_) return WakeAt(pause_until_);
  const BootTime due = DueAt(now);
  if (now < due) return WakeAt(due);
  if (losses_ == 0) begun_ = now;
  WakeAt(kNever);
  Get();
}

// ---- Reading

void FleetRounds::Get() {
  is_calling_ = true;
  service_.Get(name_, Now() + options_.timeout,
               [self = self_](absl::StatusOr<std::optional<Versioned>> answer) {
                 if (*self != nullptr) (*self)->OnGot(std::move(answer));
               });
}

void FleetRounds::OnGot(absl::StatusOr<std::optional<Versioned>> answer) {
  is_calling_ = false;
  if (!answer.ok()) return Fail(answer.status());
  const Instant now = service_.TimeAt(Now()).value_or(clock_.Now());
  ReadValue read;
  if (*answer) read = Read((*answer)->bytes, now);
  if (put_ && !Resolve(*answer, read)) return;
  BeginRound(*answer, std::move(read), now);
}

// Finds out the result of a put that got no answer. If the put can still be applied, the same bytes
// are put again under the same condition, so that only one of the two puts can succeed.
bool FleetRounds::Resolve(const std::optional<Versioned>& found, const ReadValue& read) {
  const bool is_unchanged = found ? put_->version == found->version : !put_->version;
  const bool is_same_pool = read.pool && read.envelope.generation == put_->generation;
  const WriteFate fate = is_same_pool ? FateOf(put_->id, put_->writes_before, read.envelope.writes)
                                      : WriteFate::kUnknown;
  if (is_same_pool && fate == WriteFate::kApplied) {
    Finish();
    return false;
  }
  if (is_unchanged) {
    SendPut();
    return false;
  }
  if (is_same_pool && fate == WriteFate::kNotApplied) {
    Abandon();
  } else {
    // The put may have been applied. So its report counts as reported, and the parts that it took
    // are lost.
    put_.reset();
  }
  return true;
}

// ---- A round

void FleetRounds::BeginRound(const std::optional<Versioned>& found, ReadValue read, Instant now) {
  if (read.unusable != Unusable::kNone) {
    (read.unusable == Unusable::kCorrupt ? counters_.replaced_corrupt : counters_.clock_reset)
        .Add();
    if (listener_.on_replaced) listener_.on_replaced(read.unusable);
  }
  Put put{.version = found ? std::optional(found->version) : std::nullopt,
          .writes_before = read.envelope.writes,
          .state = {.pool = read.pool ? *std::move(read.pool) : *FairSharePool::Make(settings_)}};
  Envelope envelope = std::move(read.envelope);
  if (envelope.generation == 0) envelope.generation = random_.Next() | 1;
  FairSharePool& pool = put.state.pool;
  pool.Advance(now);
  FollowSettings(pool);
  put.report = pool_.BeginRound(clock_.Now());
  const bool is_same_pool = envelope.generation == put.report.generation;
  put.grants = ApplyRound(pool, put.report, is_same_pool,
                          options_.instances ? options_.instances() : 1, now);
  put.id = {.writer = writer_, .number = ++last_write_};
  AddWrite(put.id, envelope.writes);
  put.generation = put.state.generation = envelope.generation;
  // Converts the end of the cycle from the store's clock to the clock of this instance.
  put.state.cycle_end = clock_.Now() + (pool.cycle().end - now);
  envelope.expires_at = put.expires_at = ExpiryOf(pool, now);
  put.bytes = Write(pool, std::move(envelope));
  put_ = std::move(put);
  SendPut();
}

void FleetRounds::FollowSettings(FairSharePool& pool) {
  const FairShareOptions found = pool.options_next();
  if (found == settings_) return;
  // The first round may have to be repeated, so the log is told only when it was written.
  if (!is_introduced_) {
    pool.SetOptions(settings_);
    replaces_settings_ = true;
    return;
  }
  settings_ = found;
  counters_.settings_changed.Add();
  if (listener_.on_settings) listener_.on_settings(found, false);
}

void FleetRounds::SendPut() {
  is_calling_ = true;
  service_.Put({.name = name_,
                .bytes = put_->bytes,
                .expected = put_->version,
                .expires_at = put_->expires_at,
                .deadline = Now() + options_.timeout},
               [self = self_](const absl::StatusOr<Version>& answer) {
                 if (*self != nullptr) (*self)->OnPut(answer);
               });
}

void FleetRounds::OnPut(const absl::StatusOr<Version>& answer) {
  is_calling_ = false;
  if (answer.ok()) return Finish();
  const absl::Status& status = answer.status();
  if (absl::IsAborted(status)) {
    counters_.conflicts.Add();
    // If an earlier attempt of this put is unclear, that attempt may be the write that won.
    if (!put_->is_unclear) Abandon();
    return Lose();
  }
  if (MayHaveBeenWritten(status)) {
    counters_.unclear.Add();
    put_->is_unclear = true;
  } else if (!put_->is_unclear) {
    Abandon();
  }
  Fail(status);
}

void FleetRounds::Finish() {
  counters_.written.Add();
  losses_ = failures_ = 0;
  if (pool_.is_alone() && listener_.on_alone) listener_.on_alone(false, absl::OkStatus());
  pool_.EndRound(put_->report, put_->grants, std::move(put_->state), clock_.Now());
  put_.reset();
  is_introduced_ = true;
  if (std::exchange(replaces_settings_, false)) {
    counters_.settings_changed.Add();
    if (listener_.on_settings) listener_.on_settings(settings_, true);
  }
  Step();
}

void FleetRounds::Abandon() {
  pool_.AbandonRound(put_->report);
  put_.reset();
}

void FleetRounds::Lose() {
  const Duration most = Grown(kLossPause, losses_++, kLossPauseMax);
  pause_until_ =
      Now() + Duration(static_cast<int64_t>(random_.Below(static_cast<uint64_t>(most.count()))));
  WakeAt(pause_until_);
}

void FleetRounds::Fail(const absl::Status& why) {
  counters_.failed.Add();
  losses_ = 0;
  const BootTime now = Now();
  if (failures_ == 0) failing_since_ = now;
  pause_until_ = now + random_.Jitter(Grown(kFailurePause, failures_++, kFailurePauseMax), 25);
  if (now - failing_since_ >= options_.alone_after && !pool_.is_alone()) {
    pool_.GoAlone(options_.instances ? options_.instances() : 1, clock_.Now());
    counters_.went_alone.Add();
    if (listener_.on_alone) listener_.on_alone(true, why);
  }
  WakeAt(pause_until_);
}

}  // namespace headgate::share::fleet
