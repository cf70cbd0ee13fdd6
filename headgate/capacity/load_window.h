// The events at an upstream in one stretch of time, from which the next decision is made.
//
// The limit *binds* while requests in flight are at three fifths of it or more: with a limit of 1.6
// times the number of requests that the upstream works on at once, it has no idle worker then. A
// window is *saturated* if the limit bound for seven eighths of its time, and its rate is that of
// the answers in this time. Otherwise its rate is the demand of the clients, not the capacity of
// the upstream.
//
// If requests come in bursts, the limit is higher, and binds only at the beginning of each burst.
// Then the window is *busy* if requests in flight were always above a mark that the caller chooses:
// a bit more than the requests that the upstream works on at once.
//
// Pure and without allocation. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "headgate/base/time.h"
#include "headgate/base/wide.h"

namespace headgate::capacity {

// Rates are in thousandths of an answer per second, so that small upstreams have an exact rate too.
inline constexpr uint64_t kMilli = 1000;
inline constexpr uint64_t kMilliNanosPerSecond = 1'000'000'000 * kMilli;

// Longer latencies count as this value. It excludes overflow: a million of them fit into 63 bits.
inline constexpr base::Duration kLatencyMax = std::chrono::hours(1);

// floor(count / time), in answers per 1000 s; 0 if no time passed.
constexpr uint64_t MilliPerSecond(uint64_t count, base::Duration time) {
  if (time.count() <= 0) return 0;
  return static_cast<uint64_t>(base::WideMul(count, kMilliNanosPerSecond) /
                               static_cast<uint64_t>(time.count()));
}

class LoadWindow {
 public:
  LoadWindow() = default;
  explicit LoadWindow(base::Instant start, uint64_t busy_mark = 0)
      : start_(start), advanced_(start), busy_mark_(busy_mark) {}

  // `in_flight` and `limit` held since the last call.
  void Advance(base::Instant now, uint32_t in_flight, uint32_t limit) {
    const base::Duration passed = now - advanced_;
    advanced_ = now;
    binds_ = uint64_t{in_flight} * 5 >= uint64_t{limit} * 3;
    if (binds_) bound_ += passed;
    in_flight_time_ += base::WideMul(in_flight, static_cast<uint64_t>(passed.count()));
    if (in_flight > limit) above_ += passed;
    if (in_flight >= busy_mark_) busy_ += passed;
    in_flight_most_ = std::max(in_flight_most_, in_flight);
  }
  void OnSent() { ++sent_; }
  // Directly after Advance().
  void OnAnswer(base::Duration latency) {
    ++answered_;
    if (binds_) ++answered_bound_;
    const auto ns =
        static_cast<uint64_t>(std::clamp(latency, base::Duration(0), kLatencyMax).count());
    latency_sum_ += ns;
    latency_squares_ += base::WideMul(ns, ns);
  }
  void OnFailure() { ++failed_; }
  void OnRefusedByLimit() { ++refused_by_limit_; }
  void OnRefusedByPool() { ++refused_by_pool_; }

  base::Duration Elapsed() const { return advanced_ - start_; }
  uint64_t answered() const { return answered_; }
  uint64_t ended() const { return answered_ + failed_; }
  uint32_t in_flight_most() const { return in_flight_most_; }
  base::Duration LatencyMean() const {
    return base::Duration(answered_ == 0 ? 0 : static_cast<int64_t>(latency_sum_ / answered_));
  }
  // Whether answers take at most `longest`, if their latencies are evenly spread from 0 on, as
  // those of a burst are. Then the mean of their squares is a third of that of the longest one. A
  // part of a burst, or a few answers that take much longer, hardly change this.
  bool TakesAtMost(base::Duration longest) const {
    const auto most = static_cast<uint64_t>(longest.count());
    return latency_squares_ * 3 <= base::WideMul(most, most) * answered_;
  }
  uint64_t RateMilli() const {
    return IsSaturated() ? MilliPerSecond(answered_bound_, bound_)
                         : MilliPerSecond(answered_, Elapsed());
  }

  // How many answers make the rate as exact as `count` answers that come at random. The more the
  // latencies differ, the more answers are needed, up to eight times `count`.
  uint64_t AnswersNeeded(uint64_t count) const {
    if (latency_sum_ == 0) return count;
    // answered·Σx² / (Σx)² = 1 + (deviation/mean)²
    const base::uint128 square = base::WideMul(latency_sum_, latency_sum_) / answered_;
    const auto spread = static_cast<uint64_t>(
        std::min<base::uint128>(latency_squares_ * 16 / std::max<base::uint128>(square, 1), 72));
    return std::clamp(count * (std::max<uint64_t>(spread, 16) - 8) / 8, count, count * 8);
  }

  bool IsSaturated() const {
    return bound_ >= Elapsed() - Elapsed() / 8 && Elapsed().count() > 0 && IsWorkedOn();
  }
  // Whether all requests in flight are being answered. By Little's law, their number is then the
  // rate times the latency of the answers. It is larger if most of them wait for something else
  // than the upstream's workers, as long polls do. The test allows a factor of four, because
  // answers right after a fall of the capacity still have the earlier latency.
  bool IsWorkedOn() const { return base::uint128{latency_sum_} * 4 >= in_flight_time_; }
  uint64_t busy_mark() const { return busy_mark_; }
  bool IsBusy() const {
    return busy_mark_ > 0 && busy_ >= Elapsed() - Elapsed() / 8 && IsWorkedOn();
  }
  // Requests come together, and the upstream is idle in between: the limit refuses at least one of
  // eight, does not bind for three eighths of the time, and refuses more than it would if requests
  // came evenly.
  bool IsInBursts() const {
    const auto bound = static_cast<uint64_t>(bound_.count());
    const auto elapsed = static_cast<uint64_t>(Elapsed().count());
    return refused_by_limit_ * 7 >= sent_ && bound <= elapsed / 8 * 5 &&
           base::WideMul(refused_by_limit_ * 8, elapsed) >
               base::WideMul((sent_ + refused_by_limit_) * 9, bound);
  }
  // At least one of ten requests failed.
  bool IsFailing() const { return failed_ > 0 && failed_ * 10 >= ended(); }
  bool IsOftenFailing() const { return failed_ > 0 && failed_ * 4 >= ended(); }
  // At least one of a hundred requests was refused for this reason.
  bool IsRefusedByLimit() const { return refused_by_limit_ * 100 > sent_ + refused_by_limit_; }
  // For an eighth of the time, more requests than the limit were in flight, because everything
  // passes (passthrough).
  bool IsAboveLimit() const { return above_ > Elapsed() / 8; }
  bool IsRefusedByPool() const { return refused_by_pool_ * 100 > sent_ + refused_by_pool_; }

 private:
  base::Instant start_{0};
  base::Instant advanced_{0};
  bool binds_ = false;
  base::Duration bound_{0};           // the time in which the limit bound
  base::uint128 in_flight_time_ = 0;  // the sum of the times of all requests in flight, in ns
  base::Duration above_{0};           // the time in which more than the limit was in flight
  uint64_t busy_mark_ = 0;            // of requests in flight; 0 if there is none
  base::Duration busy_{0};            // the time in which there were at least this many
  uint32_t in_flight_most_ = 0;
  uint64_t sent_ = 0;
  uint64_t answered_ = 0;
  uint64_t answered_bound_ = 0;  // answers that came while the limit held requests back
  uint64_t failed_ = 0;
  uint64_t refused_by_limit_ = 0;
  uint64_t refused_by_pool_ = 0;
  uint64_t latency_sum_ = 0;  // ns, over the answered ones
  base::uint128 latency_squares_ = 0;
};

}  // namespace headgate::capacity
