#include "headgate/capacity/capacity_controller.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "headgate/base/wide.h"

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
// How many windows a limit at which the upstream failed is remembered, or that it did not matter.
constexpr uint32_t kFailedWindows = 30;
// The capacity is known after this many saturated windows.
constexpr size_t kRatesLeast = 3;
// After this many times the length of a window, a window sends more than the pool admits. Windows
// of a small upstream are longer, so it is tried in more of them; otherwise growth would be noticed
// after a minute.
constexpr int kPoolProbeAfter = 7;
// In quarters of the capacity: 1.5 times the capacity at first, which saturates an upstream that
// cannot do more, then twice.
constexpr uint32_t kPoolStepFirst = 2;
constexpr uint32_t kPoolStepMax = 4;
// Requests above the pool may come this early. A pool refuses only in the last part of each cycle,
// after its share was used, so what was not sent before is sent then.
constexpr Duration kPoolProbeBurst = milliseconds(1000);

// If requests come in bursts, the limit doubles while it refuses some and answers take at most this
// long on average. So an answer takes about 1 s at most, the last one of a burst twice the mean.
constexpr Duration kBurstLatencyMax = milliseconds(300);
// A limit that was raised for bursts is tried at the half after this many windows.
constexpr uint32_t kBurstRest = 30;
// A window of bursts ends after this many times its usual length, even if it has few answers: the
// limit is too low for more.
constexpr int kBurstWindow = 2;

constexpr uint64_t kMilliNanosPerSecond = 1'000'000'000 * kMilli;
constexpr uint64_t kKneeMilliMax = uint64_t{kLimitMax} * kMilli;

// The limit for an upstream that works on knee_milli/1000 requests at once. It stays as it is if it
// is between the low and the high mark.
constexpr uint64_t LimitFor(uint64_t knee_milli) { return (knee_milli * 8 / 5 + 2000) / kMilli; }
constexpr uint64_t LimitLow(uint64_t knee_milli) { return (knee_milli * 7 / 5 + 1000) / kMilli; }
// In flight, with bursts: the upstream has no idle worker.
constexpr uint64_t BusyMark(uint64_t knee_milli) { return (knee_milli * 6 / 5 + 1999) / kMilli; }
constexpr uint64_t LimitHigh(uint64_t knee_milli) { return (knee_milli * 2 + 4000) / kMilli; }

// rate·1.05
constexpr uint64_t FivePercentMore(uint64_t rate) { return rate + rate / 20; }

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
      base_(options.seed) {}

uint32_t CapacityController::limit() const {
  return base_.is_limiting() ? std::min(limit_, base_.limit()) : limit_;
}

std::optional<uint64_t> CapacityController::PerCycle(Duration cycle) const {
  if (rate_ == 0) return std::nullopt;
  cycle = std::clamp<Duration>(cycle, milliseconds(1), std::chrono::hours(24));
  const auto count = WideMul(rate_, static_cast<uint64_t>(cycle.count())) / kMilliNanosPerSecond;
  return std::max<uint64_t>(1, static_cast<uint64_t>(count));
}

std::optional<Duration> CapacityController::LatencyBase() const {
  if (!base_.is_known()) return std::nullopt;
  return base_.value();
}

bool CapacityController::MayExceedPool(Instant now) {
  now = Advance(now);
  if (rate_ == 0) return true;
  if (pool_step_ == 0 || now < pool_next_) return false;
  const uint64_t extra = std::max<uint64_t>(1, rate_ * pool_step_ / 4);
  pool_next_ = std::max(pool_next_, now - kPoolProbeBurst) +
               Duration(static_cast<int64_t>(kMilliNanosPerSecond / extra));
  return true;
}

void CapacityController::OnSent(Instant now) {
  now = Advance(now);
  ++in_flight_;
  window_.OnSent();
  base_.OnSent(now);
}

void CapacityController::OnEnd(Outcome outcome, Instant sent_at, Instant now) {
  now = Advance(now);
  in_flight_ -= in_flight_ > 0 ? 1 : 0;
  for (LoadWindow* window : {&window_, &fall_watch_.window()}) {
    if (outcome == Outcome::kAnswered) window->OnAnswer(now - sent_at);
    if (outcome == Outcome::kFailed) window->OnFailure();
  }
  const bool was_limiting = base_.is_limiting();
  base_.OnEnd(outcome == Outcome::kAnswered, sent_at, in_flight_, now);
  if (was_limiting && !base_.is_limiting()) RestartWindows(now);
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
    // The load was reduced on purpose, so what was counted says nothing.
    RestartWindows(now);
    return now;
  }
  base_.Advance(now);
  if (rate_ > 0 && fall_watch_.HasFallen(rate_, now)) {
    OnFall(now);
    return now;
  }
  const bool is_over = window_.Elapsed() >= options_.window &&
                       (window_.ended() >= window_.AnswersNeeded(options_.window_answers) ||
                        window_.Elapsed() >= options_.window * kWindowStretch ||
                        (window_.IsInBursts() && window_.answered() >= kAnswersLeast &&
                         window_.Elapsed() >= options_.window * kBurstWindow));
  if (is_over) {
    const LoadWindow ended = window_;
    last_rate_ = std::min(ended.RateMilli(), kPerSecondMax * kMilli);
    window_ = LoadWindow(now, BusyMark(KneeMilli(last_rate_)));
    EndWindow(ended, now);
  }
  return now;
}

void CapacityController::RestartWindows(Instant now) {
  window_ = LoadWindow(now, BusyMark(KneeMilli(last_rate_)));
  fall_watch_.Restart(now);
}

void CapacityController::OnFall(Instant now) {
  const uint64_t knee = KneeMilli(fall_watch_.rates().back());
  // Otherwise the limit binds, not the upstream: OnSaturated raises it.
  if (limit_ < LimitLow(knee)) return;
  rate_count_ = rate_next_ = 0;
  for (const uint64_t rate : fall_watch_.rates()) TakeRate(rate);
  more_rate_ = 0;
  pool_step_ = 0;
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
  if (!base_.is_known()) base_.OnUpperBound(window.LatencyMean(), now);
  FollowBursts(window, rate);
  const bool is_saturated = window.IsSaturated() || IsSaturatedByBursts(window, rate);
  PlanPoolProbe(window,
                is_saturated ? OnSaturated(window, rate, now) : OnUnsaturated(window, rate));
}

// A burst is answered in full if the limit lets it through, and answers are late then. So the limit
// rises as long as bursts meet it while the upstream is idle in between. It falls again if that
// costs no answers: otherwise a steady storm would wait in a long queue.
void CapacityController::FollowBursts(const LoadWindow& window, uint64_t rate) {
  const uint64_t knee = KneeMilli(std::max(rate, rate_));
  const uint32_t before = std::exchange(burst_from_, 0);
  if (before > 0 && rate * 8 < burst_rate_ * 7) {
    SetLimit(std::min(before, LimitMost()));
    burst_windows_ = 0;
    burst_rest_ = kBurstRest;
    return;
  }
  burst_windows_ = window.IsInBursts() ? burst_windows_ + 1 : 0;
  // One window may hold the end of a storm.
  if (burst_windows_ >= 2 && window.LatencyMean() <= kBurstLatencyMax) {
    SetLimit(std::min<uint64_t>(uint64_t{limit_} * 2, LimitMost()));
    burst_rest_ = kBurstRest;
    is_burst_limit_ = true;
  }
  is_burst_limit_ &= limit_ > LimitHigh(knee);
  if (rate_ == 0 || !is_burst_limit_) return;
  if (burst_rest_ > 0 && --burst_rest_ > 0) return;
  if (before == 0) burst_rate_ = rate;
  burst_from_ = limit_;
  SetLimit(std::max<uint64_t>(limit_ / 2, LimitFor(knee)));
}

// The mark was chosen for the rate of the window before, so it may be too low for this one. Without
// a refusal, the rate may be what the clients asked for.
bool CapacityController::IsSaturatedByBursts(const LoadWindow& window, uint64_t rate) const {
  return window.IsBusy() && (window.IsRefusedByLimit() || window.IsRefusedByPool()) &&
         KneeMilli(rate) * 11 <= window.busy_mark() * kMilli * 10;
}

// Failures say nothing about the capacity. They may come from a limit that is too high, so it is
// lowered step by step, as long as that does not cost answers.
void CapacityController::OnFailing(const LoadWindow& window, uint64_t rate) {
  pool_step_ = 0;
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
    // It seems to shed load before the limit binds: the last request was one too many.
    if (!window.IsOftenFailing() || limit_ < window.in_flight_most()) return;
    limit = std::max(window.in_flight_most(), 1u) - 1;
  }
  // Compared with the first of several cuts.
  cut_from_ = before > 0 ? before : limit_;
  if (before == 0) cut_rate_ = rate;
  limit_failed_at_ = limit_ - std::max(limit_ / 8, 1u);
  limit_failed_windows_ = kFailedWindows;
  SetLimit(limit);
}

CapacityController::PoolProbe CapacityController::OnUnsaturated(const LoadWindow& window,
                                                                uint64_t rate) {
  // The limit refuses requests of a short burst although the upstream has time for them.
  if (window.IsRefusedByLimit() && window.LatencyMean() * 4 <= base_.value() * 5) {
    const uint64_t most = rate_ == 0 ? LimitMost() : LimitHigh(KneeMilli(rate_));
    if (limit_ < most) SetLimit(std::min<uint64_t>({limit_ + limit_ / 4 + 1, most, LimitMost()}));
  }
  // Whatever bound, the upstream has answered this many. Twice, so that it is not luck.
  if (IsMoreThanKnown(rate)) {
    if (more_rate_ > 0) StartOver(std::min(more_rate_, rate));
    more_rate_ = rate;
    return PoolProbe::kFollowed;
  }
  more_rate_ = 0;
  // The upstream answered what the pool admits, without being saturated. Counting only the unlucky
  // windows, in which it was, would lower the capacity bit by bit.
  if (window.IsRefusedByPool() && rate * 8 >= rate_ * 7) TakeRate(rate_);
  return PoolProbe::kOver;
}

CapacityController::PoolProbe CapacityController::OnSaturated(const LoadWindow& window,
                                                              uint64_t rate, Instant now) {
  base_.OnUpperBound(window.LatencyMean(), now);
  const uint64_t knee = KneeMilli(rate);
  if (limit_ < LimitLow(knee) && limit_ < LimitMost()) {
    // Requests hardly wait, so the limit binds, not the upstream: it can do at least this much.
    high_windows_ = 0;
    SetLimit(std::min<uint64_t>({LimitFor(knee), uint64_t{limit_} * 8 / 5 + 2, LimitMost()}));
    return IsMoreThanKnown(rate) ? PoolProbe::kFollowed : PoolProbe::kLimitTooLow;
  }
  const bool is_first = rate_ == 0 && rate_count_ == 0;
  const bool is_more = IsMoreThanKnown(rate);
  const bool has_changed = TakeRate(rate);
  // A limit for bursts is higher than the upstream needs while it is always busy.
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
  return is_more ? PoolProbe::kFollowed : PoolProbe::kOver;
}

void CapacityController::MeasureBase(uint64_t knee_milli, Instant now) {
  if (!base_.is_idle()) return;
  // Half of the knee; not much less if the knee seems to be small because the base latency is.
  const uint64_t least = is_burst_limit_ ? 1 : limit_ / 8;
  const uint64_t limit = std::max<uint64_t>(knee_milli / (2 * kMilli), least);
  base_.Begin(static_cast<uint32_t>(limit), in_flight_, now);
  RestartWindows(now);
}

void CapacityController::PlanPoolProbe(const LoadWindow& window, PoolProbe probe) {
  if (pool_step_ > 0) {
    pool_time_ = Duration(0);
    if (probe == PoolProbe::kFollowed) pool_step_ = std::min(pool_step_ * 2, kPoolStepMax);
    if (probe == PoolProbe::kOver) pool_step_ = 0;
    return;
  }
  if (window.IsRefusedByPool()) pool_time_ += window.Elapsed();
  if (pool_time_ < options_.window * kPoolProbeAfter) return;
  pool_step_ = kPoolStepFirst;
  pool_time_ = Duration(0);
}

// The requests that the upstream works on at once, in thousandths: rate·R (Little's law).
uint64_t CapacityController::KneeMilli(uint64_t rate) const {
  const auto knee = WideMul(rate, static_cast<uint64_t>(base_.value().count())) / 1'000'000'000;
  return static_cast<uint64_t>(std::min<base::uint128>(knee, kKneeMilliMax));
}

uint32_t CapacityController::LimitMost() const {
  return limit_failed_windows_ > 0 ? std::min(limit_failed_at_, options_.limit_max)
                                   : options_.limit_max;
}

void CapacityController::SetLimit(uint64_t limit) {
  limit_ =
      static_cast<uint32_t>(std::clamp<uint64_t>(limit, options_.limit_min, options_.limit_max));
}

bool CapacityController::IsMoreThanKnown(uint64_t rate) const {
  return rate_ > 0 && rate > FivePercentMore(rate_);
}

// The upstream can do more than was known: earlier windows no longer count.
void CapacityController::StartOver(uint64_t rate) {
  rate_count_ = rate_next_ = 0;
  TakeRate(rate);
  Publish(rate);
}

// The mean of the middle third of the last saturated windows: neither a pause nor a lucky window
// moves it. If three in a row differ from it, the upstream has changed, and only they count.
bool CapacityController::TakeRate(uint64_t rate) {
  rates_[rate_next_] = rate;
  rate_next_ = (rate_next_ + 1) % kMedianOf;
  rate_count_ = std::min(rate_count_ + 1, kMedianOf);
  if (rate_count_ < kRatesLeast) return false;
  const bool has_changed = LastThreeDiffer();
  if (has_changed) {
    std::array<uint64_t, kRatesLeast> last{};
    for (size_t i = 0; i < kRatesLeast; ++i) last[i] = LastRate(i);
    std::copy(last.begin(), last.end(), rates_.begin());
    rate_count_ = rate_next_ = kRatesLeast;
  }
  std::array<uint64_t, kMedianOf> sorted = rates_;
  std::sort(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(rate_count_));
  const size_t from = rate_count_ / 3;
  const size_t to = rate_count_ - rate_count_ / 3;
  uint64_t sum = 0;
  for (size_t i = from; i < to; ++i) sum += sorted[i];
  Publish(sum / (to - from));
  return has_changed;
}

// The rate of the last window but `back`.
uint64_t CapacityController::LastRate(size_t back) const {
  return rates_[(rate_next_ + kMedianOf - 1 - back) % kMedianOf];
}

bool CapacityController::LastThreeDiffer() const {
  bool all_less = true;
  bool all_more = true;
  for (size_t i = 0; i < kRatesLeast; ++i) {
    all_less &= LastRate(i) * 5 < rate_ * 4;
    all_more &= LastRate(i) * 6 > rate_ * 7;
  }
  return rate_ > 0 && (all_less || all_more);
}

void CapacityController::Publish(uint64_t rate) {
  rate = std::clamp(rate, options_.per_second_min * kMilli, options_.per_second_max * kMilli);
  const uint64_t difference = rate > rate_ ? rate - rate_ : rate_ - rate;
  if (rate_ == 0 || difference * 40 > rate_) rate_ = rate;
}

std::optional<FoundCapacity> CapacityController::Found() const {
  if (rate_ == 0) return std::nullopt;
  return FoundCapacity{.per_1000_s = rate_, .limit = limit_, .latency_base = base_.value()};
}

void CapacityController::BeginWith(const FoundCapacity& found, Instant now) {
  now = Advance(now);
  if (found.per_1000_s == 0) return;
  const uint64_t rate = std::clamp(found.per_1000_s, options_.per_second_min * kMilli,
                                   options_.per_second_max * kMilli);
  rate_ = 0;
  rate_count_ = rate_next_ = 0;
  // It counts as measured, so a window that differs by chance does not replace it.
  for (size_t i = 0; i < kRatesLeast; ++i) TakeRate(rate);
  SetLimit(found.limit);
  base_.OnUpperBound(found.latency_base, now);
}

}  // namespace headgate::capacity
