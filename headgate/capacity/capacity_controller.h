// Finds, from the answers of an upstream, how much it can do, and keeps the queue in it short.
//
//   limit      how many requests may be in flight (sent, first byte not yet received). It guards
//              the upstream: about 1.6 times what it works on at once, which keeps it busy and
//              lets few requests wait. It is not the capacity
//   capacity   how many requests the upstream answers per second *while it is saturated*. It drives
//              the pool that clients share
//
// Both follow Little's law: an upstream that answers X requests per second and needs R for each of
// them, if they do not wait for each other, works on X·R at once (its knee). X is measured in
// windows of at least a second in which the limit bound. To measure R, the limit is below the knee
// for a moment (base_latency.h). For example, 10 workers that need 10 ms each: X = 1000/s, R = 10
// ms, the knee is 10, and the limit is 18.
//
// Idle time teaches nothing: a window in which the limit did not bind changes neither. If a pool
// admits only the capacity, the limit never binds. So while the pool refuses requests, one window
// of eight sends half as much again, and the capacity rises if the answers follow (pool_probe.h).
// Before a capacity is known, the limit doubles instead of refusing a request, until the answers
// show that requests wait for each other (cold_start.h).
//
// The capacity is a mean over several windows (known_rate.h); a fall is noticed in shorter ones
// (fall_watch.h). If requests come in bursts, the limit rises as long as it refuses some while the
// upstream is idle in between (burst_limit.h).
//
// docs/internals/capacity.md explains the cases. The limit is that of BBR (Cardwell et al., ACM
// Queue 14(5), 2016); docs/decisions/0027 compares it with Gradient2, Vegas and AIMD.
//
// Pure: takes events and the time; an earlier time counts as the latest one seen. Integers only, no
// allocation. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/capacity/base_latency.h"
#include "headgate/capacity/burst_limit.h"
#include "headgate/capacity/cold_start.h"
#include "headgate/capacity/fall_watch.h"
#include "headgate/capacity/found_capacity.h"
#include "headgate/capacity/known_rate.h"
#include "headgate/capacity/load_window.h"
#include "headgate/capacity/patience.h"
#include "headgate/capacity/pool_probe.h"

namespace headgate::capacity {

inline constexpr uint32_t kLimitMax = 1 << 20;
inline constexpr uint64_t kPerSecondMax = 10'000'000;

struct CapacityOptions {
  // The limit is within these bounds, whatever is measured. Raise limit_min if fewer requests in
  // flight would be worse than a queue. Below the smallest useful value, 2, nothing can be learned.
  uint32_t limit_min = 2;
  uint32_t limit_max = 4096;
  // Before anything is known. While answers show no queue, it doubles whenever it is reached.
  uint32_t limit_first = 16;
  // The capacity is within these bounds, in requests per second.
  uint64_t per_second_min = 1;
  uint64_t per_second_max = 1'000'000;
  // A window ends after this time *and* this many answers, or after ten times this time. Fewer
  // answers follow a change sooner, but the capacity is less exact: 250 give ±13 % at 2 σ if
  // answers come at random (Poisson).
  base::Duration window = std::chrono::seconds(1);
  uint32_t window_answers = 250;
  // Spreads the measurements of several instances in time.
  uint64_t seed = 1;

  // InvalidArgument with a message for the person who configured these options.
  absl::Status Validate() const;
};

// How a request left the upstream.
enum class RequestEnd : uint8_t {
  kAnswered,  // the first byte of an answer arrived, whatever its status, unless it is a failure
  kFailed,    // refused, reset, timed out, 502, 503 or 504. Neither a completion nor a latency
  kLeft,      // it is no longer waited for and teaches nothing: the client has gone, or the request
              // has turned out to be a long poll
};

// Why a request was not sent.
enum class RefusedBy : uint8_t {
  kLimit,  // HasRoom() was false
  kPool,   // its client has used up its share, and MayExceedPool() was false
};

class CapacityController {
 public:
  static absl::StatusOr<CapacityController> Make(const CapacityOptions& options);

  // ---- Answers

  // How many requests may be in flight now; less than usual while the base latency is measured.
  uint32_t limit() const;
  // The same while nothing is measured.
  uint32_t limit_usual() const { return limit_; }
  // Sent requests without OnEnd.
  uint32_t in_flight() const { return in_flight_; }
  bool HasRoom() const { return in_flight_ < limit(); }
  // Doubles the limit if nothing is known about the upstream, and its answers do not show that
  // requests wait in it (cold_start.h). Returns whether there is room then.
  bool MakeRoom(base::Instant now);

  // How many requests a pool should admit per `cycle`, at least 1. Empty until the upstream has
  // been saturated once. `cycle` is from 1 ms to 1 day. Changes by more than 2.5 % or not at all.
  std::optional<uint64_t> PerCycle(base::Duration cycle) const;

  // Whether a request that the pool refused should be sent nevertheless: always while no capacity
  // is known, else now and then, to see whether the capacity has grown. The caller then sends it.
  bool MayExceedPool(base::Instant now);

  // The mean latency of requests that do not wait for each other; empty before the first window.
  std::optional<base::Duration> LatencyBase() const;

  // How long a request may be in flight until it is no longer load. The caller should then call
  // OnEnd with kLeft, and OnLateAnswer when it is answered.
  base::Duration Patience() const { return patience_.value(); }

  // How long the upstream may work on a request that is no longer waited for: as long as it needs
  // for a full limit, if its rate is known.
  base::Duration WorkTime() const { return patience_.work_time(); }

  // ---- A restart of the process that has the controller

  // For the next controller; empty until the upstream has been saturated once.
  std::optional<FoundCapacity> Found() const;
  // Begins with the findings of another controller, clamped to the bounds.
  void BeginWith(const FoundCapacity& found, base::Instant now);

  // ---- Events

  void OnSent(base::Instant now);
  // A request that was sent at `sent_at` has the first byte of its answer, or has failed, or is no
  // longer waited for. Call it exactly once for each OnSent. The rest of the body does not count,
  // however long it takes.
  void OnEnd(RequestEnd outcome, base::Instant sent_at, base::Instant now);
  // An answer has come to a request for which OnEnd was called before.
  void OnLateAnswer(base::Instant sent_at, base::Instant now);
  void OnRefused(RefusedBy by, base::Instant now);

 private:
  explicit CapacityController(const CapacityOptions& options);

  // Counts time and ends a window that is over.
  base::Instant Advance(base::Instant now);
  bool IsWindowOver() const;
  // Forgets the counts from before `now`.
  void RestartWindows(base::Instant now);
  void OnFall(base::Instant now);
  void EndWindow(const LoadWindow& window, base::Instant now);
  void OnColdQueue();
  void OnFailing(const LoadWindow& window, uint64_t rate);
  PoolProbe::Result OnUnsaturated(const LoadWindow& window, uint64_t rate);
  PoolProbe::Result OnSaturated(const LoadWindow& window, uint64_t rate, base::Instant now);
  void OnPatience(base::Duration latency);
  void MeasureBase(uint64_t knee_milli, base::Instant now);

  static uint64_t KneeMilli(uint64_t rate, base::Duration latency);
  uint64_t KneeMilli(uint64_t rate) const { return KneeMilli(rate, base_.value()); }
  // Within the bounds of the options, too.
  uint32_t LimitMost() const;
  void SetLimit(uint64_t limit);

  CapacityOptions options_;
  base::Instant seen_{0};
  bool has_begun_ = false;
  LoadWindow window_;
  FallWatch fall_watch_;
  uint32_t in_flight_ = 0;

  uint32_t limit_;
  // The upstream failed at a higher limit. In force for this many more windows.
  uint32_t limit_failed_at_ = 0;
  uint32_t limit_failed_windows_ = 0;
  // The limit and the rate before failures lowered the limit, kept until the next window; 0: it was
  // not lowered.
  uint32_t cut_from_ = 0;
  uint64_t cut_rate_ = 0;
  uint32_t failing_windows_ = 0;  // in a row
  uint32_t no_cut_windows_ = 0;   // no failure lowers the limit in these: lowering it did not help
  uint32_t high_windows_ = 0;     // in a row, in which the limit was too high
  ColdStart cold_start_;
  BurstLimit bursts_;
  BaseLatency base_;
  capacity::Patience patience_;

  KnownRate known_;
  uint64_t last_rate_ = 0;  // of the last window, even if the limit did not bind in it
  uint64_t more_rate_ = 0;  // of the last window, if above the known rate; else 0
  PoolProbe pool_probe_;
};

}  // namespace headgate::capacity
