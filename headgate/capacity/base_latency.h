// The mean latency of an upstream whose requests do not wait for each other.
//
// An upstream that is always loaded never shows it, so it is measured on purpose. For a moment the
// limit is half of the requests that the upstream works on at once. Requests that were sent earlier
// drain, then the next 200 are sampled (up to 600 if their latencies differ much). A sample counts
// if it was *sent* in that moment, whenever its answer arrives; otherwise slow answers would be
// missing from the mean.
//
//   idle ──Begin──▶ draining ──in flight ≤ half──▶ sampling ──200 sent──▶ awaiting ──all back──▶
//   idle
//
// A fall is believed at once, and measured again with a limit that is now smaller. A rise by more
// than three tenths may be a pause of the upstream, so a second measurement has to confirm it.
//
// BBR has the same idea as PROBE_RTT (Cardwell et al., ACM Queue 14(5), 2016). Pure and without
// allocation. Not thread-safe.
#pragma once

#include <cstdint>

#include "headgate/base/random.h"
#include "headgate/base/time.h"
#include "headgate/base/wide.h"

namespace headgate::capacity {

class BaseLatency {
 public:
  explicit BaseLatency(uint64_t seed) : random_(seed) {}

  bool is_known() const { return value_.count() > 0; }
  base::Duration value() const { return value_; }

  // A mean over requests that may have waited for each other: an upper bound.
  void OnUpperBound(base::Duration mean, base::Instant now);

  // Whether the last measurement is old, or has to be repeated.
  bool IsDue(base::Instant now) const { return again_ || now >= due_at_; }
  // Whether it was measured in the last few seconds.
  bool IsFresh(base::Instant now) const {
    return is_measured_ && !again_ && now - measured_at_ <= kFresh;
  }

  void Begin(uint32_t limit, uint32_t in_flight, base::Instant now);
  // Whether the limit of the measurement is in force.
  bool is_limiting() const { return phase_ == Phase::kDraining || phase_ == Phase::kSampling; }
  bool is_idle() const { return phase_ == Phase::kIdle; }
  uint32_t limit() const { return limit_; }

  void OnSent(base::Instant now);
  // `answered`: false for a failure, which is not a sample. `in_flight` does not count this
  // request.
  void OnEnd(bool answered, base::Instant sent_at, uint32_t in_flight, base::Instant now);
  // Ends phases that last too long.
  void Advance(base::Instant now);

 private:
  enum class Phase : uint8_t { kIdle, kDraining, kSampling, kAwaiting };

  static constexpr uint32_t kSamples = 200;  // ±7 % at 1 σ if latencies are exponential
  static constexpr uint32_t kSamplesMost =
      600;  // if latencies differ more than exponential ones do
  static constexpr uint32_t kSamplesLeast = 20;  // fewer are discarded
  static constexpr base::Duration kSampling = std::chrono::seconds(1);
  static constexpr base::Duration kSamplingMax = std::chrono::seconds(5);
  static constexpr base::Duration kDrainingMax = std::chrono::seconds(5);
  static constexpr base::Duration kAwaitingMin = std::chrono::seconds(1);
  static constexpr base::Duration kAwaitingMax = std::chrono::seconds(10);
  static constexpr base::Duration kFresh = std::chrono::seconds(10);
  static constexpr base::Duration kInterval = std::chrono::seconds(30);
  static constexpr uint32_t kJitterPercent =
      15;  // so that the instances of a fleet do not measure at the same time

  bool HasEnough() const;
  void StopSampling(base::Instant now);
  void Conclude(base::Instant now);
  void Take(base::Duration mean);

  base::Random random_;
  base::Duration value_{0};
  base::Duration rise_{0};  // a rise that has to be confirmed; 0 if none has
  base::Instant measured_at_{0};
  base::Instant due_at_{0};
  bool is_measured_ = false;
  bool again_ = false;

  Phase phase_ = Phase::kIdle;
  base::Instant phase_since_{0};
  base::Instant sampled_from_{0};
  base::Instant sampled_to_{0};
  uint32_t limit_ = 1;
  uint32_t sent_ = 0;
  uint32_t ended_ = 0;
  uint32_t answered_ = 0;
  uint64_t latency_sum_ = 0;  // ns
  base::uint128 latency_squares_ = 0;
};

}  // namespace headgate::capacity
