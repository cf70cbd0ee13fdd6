#include "headgate/capacity/base_latency.h"

#include <algorithm>

#include "headgate/capacity/load_window.h"

namespace headgate::capacity {

using base::Duration;
using base::Instant;

void BaseLatency::OnUpperBound(Duration mean, Instant now) {
  if (mean.count() <= 0) return;
  if (!is_known()) {
    value_ = mean;
    due_at_ = now + random_.Jitter(kInterval, kJitterPercent);
  }
  // Halfway, because the mean of a few requests may be low by luck.
  if (mean * 10 < value_ * 9) value_ = (value_ + mean) / 2;
}

void BaseLatency::Begin(uint32_t limit, uint32_t in_flight, Instant now) {
  limit_ = std::max(limit, 1u);
  phase_ = Phase::kDraining;
  phase_since_ = now;
  sent_ = ended_ = answered_ = 0;
  latency_sum_ = 0;
  latency_squares_ = 0;
  if (in_flight > limit_) return;
  phase_ = Phase::kSampling;
  sampled_from_ = now;
}

void BaseLatency::OnSent(Instant now) {
  if (phase_ != Phase::kSampling) return;
  ++sent_;
  if (HasEnough()) StopSampling(now);
}

bool BaseLatency::HasEnough() const {
  if (sent_ < kSamples || sent_ >= kSamplesMost) return sent_ >= kSamplesMost;
  // n·Σx² / (Σx)² = 1 + (deviation/mean)², which is 2 if latencies are exponential.
  return latency_squares_ * answered_ * 2 <= base::WideMul(latency_sum_, latency_sum_) * 5;
}

void BaseLatency::OnEnd(bool answered, Instant sent_at, uint32_t in_flight, Instant now) {
  if (phase_ == Phase::kIdle) return;
  if (phase_ == Phase::kDraining) {
    if (in_flight > limit_) return;
    phase_ = Phase::kSampling;
    phase_since_ = sampled_from_ = now;
    return;
  }
  const bool sampled =
      sent_at >= sampled_from_ && (phase_ == Phase::kSampling || sent_at <= sampled_to_);
  if (!sampled) return;
  ++ended_;
  if (answered) {
    ++answered_;
    const auto ns =
        static_cast<uint64_t>(std::clamp(now - sent_at, Duration(1), kLatencyMax).count());
    latency_sum_ += ns;
    latency_squares_ += base::WideMul(ns, ns);
  }
  if (phase_ == Phase::kAwaiting && ended_ >= sent_) Conclude(now);
}

void BaseLatency::Advance(Instant now) {
  const Duration passed = now - phase_since_;
  switch (phase_) {
    case Phase::kIdle:
      return;
    case Phase::kDraining:
      if (passed >= kDrainingMax) Conclude(now);
      return;
    case Phase::kSampling:
      if (passed >= (sent_ >= kSamplesLeast ? kSampling : kSamplingMax)) StopSampling(now);
      return;
    case Phase::kAwaiting:
      if (passed >= std::clamp(8 * value_, kAwaitingMin, kAwaitingMax)) Conclude(now);
      return;
  }
}

void BaseLatency::StopSampling(Instant now) {
  phase_ = Phase::kAwaiting;
  phase_since_ = sampled_to_ = now;
  if (ended_ >= sent_) Conclude(now);
}

void BaseLatency::Conclude(Instant now) {
  phase_ = Phase::kIdle;
  again_ = false;
  due_at_ = now + random_.Jitter(kInterval, kJitterPercent);
  if (answered_ < kSamplesLeast) return;
  measured_at_ = now;
  is_measured_ = true;
  Take(Duration(static_cast<int64_t>(latency_sum_ / answered_)));
}

void BaseLatency::Take(Duration mean) {
  if (!is_known()) {
    value_ = mean;
  } else if (mean * 10 <= value_ * 8) {
    value_ = mean;
    again_ = true;
    rise_ = Duration(0);
  } else if (mean * 10 <= value_ * 13) {
    value_ = (value_ + mean) / 2;
    rise_ = Duration(0);
  } else if (rise_.count() == 0) {
    rise_ = mean;
    again_ = true;
  } else {
    value_ = std::min((mean + rise_) / 2, mean * 13 / 10);
    rise_ = Duration(0);
  }
}

}  // namespace headgate::capacity
