#include "headgate/capacity/capacity_controller.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "headgate/base/wide.h"
#include "headgate/capacity/knee_limits.h"

namespace headgate::capacity {
namespace {

using base::Duration;
using base::Instant;
using base::WideMul;
using std::chrono::milliseconds;

// A window with fewer answers teaches nothing. So an upstream that hangs keeps its capacity.
constexpr uint64_t kAnswersLeast = 20;
// A window that gets few answers ends after this many times its usual length.
constexpr int kWindowStretch = 10;
// For this many windows, a limit at which the upstream failed is remembered, and also the fact that
// a limit did not matter.
constexpr uint32_t kFailedWindows = 30;
// A window of bursts ends after this many times its usual length, even if it has few answers: the
// limit is too low for more.
constexpr int kBurstWindow = 2;

constexpr uint64_t kKneeMilliMax = uint64_t{kLimitMax} * kMilli;

}  // namespace

absl::Status CapacityOptions::Validate() const {
  if (limit_min < 2 || limit_max > kLimitMax || limit_min > limit_max) {
    return absl::InvalidArgumentError(
        fmt::format("the limit of requests in flight is from 2 to {}, not from {} to {}", kLimitMax,
                    limit_min, limit_max));
  }
  if (limit_first < limit_min || limit_first > limit_max) {
    return absl::InvalidArgumentError(
        fmt::format("the first limit is from {} to {}, not {}", limit_min, limit_max, limit_first));
  }
  if (per_second_min < 1 || per_second_max > kPerSecondMax || per_second_min > per_second_max) {
    return absl::InvalidArgumentError(
        fmt::format("the capacity is from 1 to {} requests per second, not from {} to {}",
                    kPerSecondMax, per_second_min, per_second_max));
  }
  if (window < milliseconds(100) || window > std::chrono::minutes(1)) {
    return absl::InvalidArgumentError("a window is from 100 ms to 1 minute long");
  }
  if (window_answers < kAnswersLeast || window_answers > 1'000'000) {
    return absl::InvalidArgumentError(fmt::format("a window has from {} to 1000000 answers, not {}",
                                                  kAnswersLeast, window_answers));
  }
  return absl::OkStatus();
}

absl::StatusOr<CapacityController> CapacityController::Make(const CapacityOptions& options) {
  HEADGATE_RETURN_IF_ERROR(options.Validate());
  return CapacityController(options);
}

CapacityController::CapacityController(const CapacityOptions& options)
    : options_(options),
      fall_watch_(options.window / 2, std::max<uint64_t>(options.window_answers * 2 / 5, 1)),
      limit_(options.limit_first),
      base_(options.seed),
      known_(options.per_second_min * kMilli, options.per_second_max * kMilli),
      pool_probe_(options.window) {}

uint32_t CapacityController::limit() const {
  return base_.is_limiting() ? std::min(limit_, base_.limit()) : limit_;
}

std::optional<uint64_t> CapacityController::PerCycle(Duration cycle) const {
  if (!known_.is_known()) return std::nullopt;
  cycle = std::clamp<Duration>(cycle, milliseconds(1), std::chrono::hours(24));
  const auto count =
      WideMul(known_.value(), static_cast<uint64_t>(cycle.count())) / kMilliNanosPerSecond;
  return std::max<uint64_t>(1, static_cast<uint64_t>(count));
}

std::optional<Duration> CapacityController::LatencyBase() const {
  if (!base_.is_known()) return std::nullopt;
  return base_.value();
}

bool CapacityController::MayExceedPool(Instant now) {
  now = Advance(now);
  return !known_.is_known() || pool_probe_.Takes(known_.value(), now);
}

bool CapacityController::MakeRoom(Instant now) {
  Advance(now);
  if (known_.is_known() || cold_start_.had_queue() || base_.is_limiting()) return HasRoom();
  SetLimit(std::min(std::max(limit_, in_flight_) * uint64_t{2}, uint64_t{LimitMost()}));
  return HasRoom();
}

void CapacityController::OnSent(Instant now) {
  now = Advance(now);
  ++in_flight_;
  window_.OnSent();
  cold_start_.OnSent(now);
  base_.OnSent(now);
}

void CapacityController::OnEnd(RequestEnd outcome, Instant sent_at, Instant now) {
  now = Advance(now);
  in_flight_ -= in_flight_ > 0 ? 1 : 0;
  for (LoadWindow* window : {&window_, &fall_watch_.window()}) {
    if (outcome == RequestEnd::kAnswered) window->OnAnswer(now - sent_at);
    if (outcome == RequestEnd::kFailed) window->OnFailure();
  }
  if (outcome == RequestEnd::kAnswered) OnPatience(now - sent_at);
  if (outcome == RequestEnd::kAnswered && !known_.is_known() && cold_start_.OnAnswer(sent_at, now))
    OnColdQueue();
  const bool was_limiting = base_.is_limiting();
  base_.OnEnd(outcome == RequestEnd::kAnswered, sent_at, in_flight_, now);
  if (was_limiting && !base_.is_limiting()) RestartWindows(now);
}

void CapacityController::OnLateAnswer(Instant sent_at, Instant now) {
  now = Advance(now);
  OnPatience(now - sent_at);
}

void CapacityController::OnPatience(Duration latency) {
  const uint64_t rate = known_.value();
  const uint64_t limit_time = rate == 0 ? 0 : limit_ * kMilliNanosPerSecond / rate;
  patience_.OnAnswer(latency);
  patience_.SetKnown(base_.value(), Duration(static_cast<int64_t>(limit_time)));
}

void CapacityController::OnRefused(RefusedBy by, Instant now) {
  Advance(now);
  by == RefusedBy::kLimit ? window_.OnRefusedByLimit() : window_.OnRefusedByPool();
}

Instant CapacityController::Advance(Instant now) {
  if (!has_begun_) {
    has_begun_ = true;
    seen_ = now;
    RestartWindows(now);
  }
  now = seen_ = std::max(now, seen_);
  window_.Advance(now, in_flight_, limit());
  fall_watch_.window().Advance(now, in_flight_, limit());
  if (base_.is_limiting()) {
    base_.Advance(now);
    // The load was reduced on purpose, so the counts of this window say nothing.
    RestartWindows(now);
    return now;
  }
  base_.Advance(now);
  if (known_.is_known() && fall_watch_.HasFallen(known_.value(), now)) {
    OnFall(now);
    return now;
  }
  if (IsWindowOver()) {
    const LoadWindow ended = window_;
    last_rate_ = std::min(ended.RateMilli(), kPerSecondMax * kMilli);
    window_ = LoadWindow(now, BusyMark(KneeMilli(last_rate_)));
    EndWindow(ended, now);
  }
  return now;
}

bool CapacityController::IsWindowOver() const {
  const Duration elapsed = window_.Elapsed();
  if (elapsed < options_.window) return false;
  const bool is_long = elapsed >= options_.window * kBurstWindow;
  if (window_.IsInBursts()) {
    // The answers of a whole burst are compared, so the burst should be over.
    if (is_long ? window_.answered() >= kAnswersLeast : uint64_t{in_flight_} * 4 > limit())
      return is_long;
  }
  return window_.ended() >= window_.AnswersNeeded(options_.window_answers) ||
         elapsed >= options_.window * kWindowStretch;
}

void CapacityController::RestartWindows(Instant now) {
  window_ = LoadWindow(now, BusyMark(KneeMilli(last_rate_)));
  fall_watch_.Restart(now);
}

void CapacityController::OnFall(Instant now) {
  const uint64_t knee = KneeMilli(fall_watch_.rates().back());
  // Otherwise the limit binds, not the upstream: OnSaturated raises it.
  if (limit_ < LimitLow(knee)) return;
  known_.Replace(fall_watch_.rates());
  more_rate_ = 0;
  pool_probe_.Stop();
  RestartWindows(now);
  MeasureBase(knee, now);
}

void CapacityController::EndWindow(const LoadWindow& window, Instant now) {
  if (window.answered() < kAnswersLeast) return;
  if (limit_failed_windows_ > 0) --limit_failed_windows_;
  if (no_cut_windows_ > 0) --no_cut_windows_;
  const uint64_t rate = std::min(window.RateMilli(), kPerSecondMax * kMilli);
  if (window.IsFailing()) return OnFailing(window, rate);
  cut_from_ = 0;
  failing_windows_ = 0;
  if (!base_.is_known()) {
    // If there was a queue, the first requests hardly waited in it.
    base_.OnUpperBound(cold_start_.had_queue()
                           ? std::min(cold_start_.latency(), window.LatencyMean())
                           : window.LatencyMean(),
                       now);
  }
  SetLimit(bursts_.After(window, {.rate = rate,
                                  .knee_milli = KneeMilli(std::max(rate, known_.value())),
                                  .has_capacity = known_.is_known(),
                                  .limit = limit_,
                                  .limit_most = LimitMost()}));
  // Otherwise the clients ask for no more than the limit lets through, and nothing shows that the
  // upstream cannot do more.
  const bool has_more =
      window.IsRefusedByLimit() || window.IsRefusedByPool() || window.IsAboveLimit();
  const bool is_saturated =
      (window.IsSaturated() && has_more) || BurstLimit::IsSaturated(window, KneeMilli(rate));
  pool_probe_.OnWindow(window,
                       is_saturated ? OnSaturated(window, rate, now) : OnUnsaturated(window, rate));
}

// The limit was too high. It falls to twice the value that the first answers and the rate suggest,
// because both are rough.
void CapacityController::OnColdQueue() {
  if (base_.is_known() || window_.answered() < kAnswersLeast) return;
  const uint64_t rate = std::min(window_.RateMilli(), kPerSecondMax * kMilli);
  const uint64_t limit = 2 * LimitFor(KneeMilli(rate, cold_start_.latency()));
  SetLimit(std::max<uint64_t>(std::min<uint64_t>(limit_, limit), options_.limit_first));
}

// Failures say nothing about the capacity. They may come from a limit that is too high, so it is
// lowered step by step, as long as that does not cost answers.
void CapacityController::OnFailing(const LoadWindow& window, uint64_t rate) {
  pool_probe_.Stop();
  high_windows_ = 0;
  const uint32_t before = std::exchange(cut_from_, 0);
  if (before > 0 && rate * 8 < cut_rate_ * 7) {
    SetLimit(before);
    limit_failed_windows_ = 0;
    no_cut_windows_ = kFailedWindows;
    return;
  }
  // The first window may have failed for a part of its time only, so its rate is not comparable.
  if (++failing_windows_ < 2 || no_cut_windows_ > 0) return;
  uint32_t limit = limit_ - std::max(limit_ / 4, 1u);
  if (!window.IsSaturated()) {
    // The upstream seems to shed load before the limit binds: its last request was one too many.
    if (!window.IsOftenFailing() || limit_ < window.in_flight_most()) return;
    limit = std::max(window.in_flight_most(), 1u) - 1;
  }
  // The rate is compared with the one before the first of several cuts.
  cut_from_ = before > 0 ? before : limit_;
  if (before == 0) cut_rate_ = rate;
  limit_failed_at_ = limit_ - std::max(limit_ / 8, 1u);
  limit_failed_windows_ = kFailedWindows;
  SetLimit(limit);
}

PoolProbe::Result CapacityController::OnUnsaturated(const LoadWindow& window, uint64_t rate) {
  // The limit refuses requests of a short burst although the upstream has time for them.
  if (window.IsRefusedByLimit() && window.LatencyMean() * 4 <= base_.value() * 5) {
    const uint64_t most = known_.is_known() ? LimitHigh(KneeMilli(known_.value())) : LimitMost();
    if (limit_ < most) SetLimit(std::min<uint64_t>({limit_ + limit_ / 4 + 1, most, LimitMost()}));
  }
  // Whether or not the limit bound, the upstream has answered this many requests. Two windows must
  // show it, so that it is not luck.
  if (known_.IsLessThan(rate)) {
    if (more_rate_ > 0) known_.Raise(std::min(more_rate_, rate));
    more_rate_ = rate;
    return PoolProbe::Result::kFollowed;
  }
  more_rate_ = 0;
  // The upstream answered all requests that the pool admits, without being saturated. If only
  // windows of a saturated upstream counted, the unlucky ones among them would lower the capacity
  // bit by bit.
  if (window.IsRefusedByPool() && rate * 8 >= known_.value() * 7) known_.Take(known_.value());
  return PoolProbe::Result::kOver;
}

PoolProbe::Result CapacityController::OnSaturated(const LoadWindow& window, uint64_t rate,
                                                  Instant now) {
  base_.OnUpperBound(window.LatencyMean(), now);
  const uint64_t knee = KneeMilli(rate);
  if (limit_ < LimitLow(knee) && limit_ < LimitMost()) {
    // Requests hardly wait, so the limit binds, not the upstream: it can do at least this much.
    high_windows_ = 0;
    SetLimit(std::min<uint64_t>({LimitFor(knee), uint64_t{limit_} * 8 / 5 + 2, LimitMost()}));
    return known_.IsLessThan(rate) ? PoolProbe::Result::kFollowed : PoolProbe::Result::kLimitTooLow;
  }
  const bool is_first = !known_.has_windows();
  const bool is_more = known_.IsLessThan(rate);
  const bool has_changed = known_.Take(rate);
  // While the upstream is always busy, it does not need the higher limit that bursts need.
  high_windows_ = limit_ > LimitHigh(knee) && window.IsSaturated() ? high_windows_ + 1 : 0;
  // One window may hold a pause of the upstream. And a base latency that is too small would lower
  // the limit without end, so the limit falls only after a fresh measurement.
  const bool falls = high_windows_ >= 2;
  if (falls && base_.IsFresh(now)) {
    SetLimit(LimitFor(knee));
    high_windows_ = 0;
  } else if (falls || is_first || has_changed || base_.IsDue(now)) {
    MeasureBase(knee, now);
  }
  return is_more ? PoolProbe::Result::kFollowed : PoolProbe::Result::kOver;
}

void CapacityController::MeasureBase(uint64_t knee_milli, Instant now) {
  if (!base_.is_idle()) return;
  // Half of the knee; not much less if the knee seems to be small because the base latency is.
  const uint64_t least = bursts_.is_raised() ? 1 : limit_ / 8;
  const uint64_t limit = std::max<uint64_t>(knee_milli / (2 * kMilli), least);
  base_.Begin(static_cast<uint32_t>(limit), in_flight_, now);
  RestartWindows(now);
}

// The requests that the upstream works on at once, in thousandths: rate·R (Little's law).
uint64_t CapacityController::KneeMilli(uint64_t rate, Duration latency) {
  const auto knee = WideMul(rate, static_cast<uint64_t>(latency.count())) / 1'000'000'000;
  return static_cast<uint64_t>(std::min<base::uint128>(knee, kKneeMilliMax));
}

uint32_t CapacityController::LimitMost() const {
  if (limit_failed_windows_ == 0) return options_.limit_max;
  return std::clamp(limit_failed_at_, options_.limit_min, options_.limit_max);
}

void CapacityController::SetLimit(uint64_t limit) {
  limit_ =
      static_cast<uint32_t>(std::clamp<uint64_t>(limit, options_.limit_min, options_.limit_max));
}

std::optional<FoundCapacity> CapacityController::Found() const {
  if (!known_.is_known()) return std::nullopt;
  return FoundCapacity{
      .per_1000_s = known_.value(), .limit = limit_, .latency_base = base_.value()};
}

void CapacityController::BeginWith(const FoundCapacity& found, Instant now) {
  now = Advance(now);
  if (found.per_1000_s == 0) return;
  known_.BeginWith(found.per_1000_s);
  SetLimit(found.limit);
  base_.OnUpperBound(found.latency_base, now);
}

}  // namespace headgate::capacity
