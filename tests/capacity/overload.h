// Clients that arrive at random (Poisson), a guard, a pool and the benchmark upstream, in virtual
// time. A seed repeats a run exactly.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tests/capacity/guard.h"
#include "tests/capacity/upstream.h"

namespace headgate::capacity {

// The pool that the capacity drives, with one client.
enum class Pool : uint8_t {
  kNone,   // everything that the limit lets through
  kPaced,  // evenly in time. The hardest case: the limit never binds
  kCycle,  // as FairSharePool: the capacity of a cycle, at any times within it
};

struct OverloadOptions {
  uint64_t seed = 1;
  UpstreamOptions upstream{};
  double per_second = 2000;  // requests of all clients
  Pool pool = Pool::kNone;
  base::Duration cycle = std::chrono::seconds(10);
};

// The events between two calls of Overload::TakeCounts.
struct Counts {
  base::Duration time{0};
  uint64_t arrived = 0;
  uint64_t sent = 0;
  uint64_t refused_by_limit = 0;
  uint64_t refused_by_pool = 0;
  uint64_t answered = 0;
  uint64_t failed = 0;
  std::vector<base::Duration> latencies;  // of the answered ones

  double Goodput() const;  // answered per second
  base::Duration Percentile(uint32_t percent);
};

class Overload {
 public:
  Overload(const OverloadOptions& options, Guard& guard);

  Upstream& upstream() { return upstream_; }
  base::Instant now() const { return now_; }
  uint32_t in_flight() const { return in_flight_; }
  // 0: nobody comes any more.
  void SetPerSecond(double per_second);

  // Runs until `time` has passed. `each_100_ms` is called at every tenth of a second.
  void Run(
      base::Duration time, const std::function<void()>& each_100_ms = [] {});
  Counts TakeCounts();

 private:
  void Arrive();
  bool PoolAdmits();
  void End(const Answer& answer);
  void RunUntil(base::Instant until);

  OverloadOptions options_;
  Guard& guard_;
  Upstream upstream_;
  base::Random random_;
  base::Instant now_{0};
  base::Instant next_arrival_{0};
  uint32_t in_flight_ = 0;
  std::vector<base::Instant> sent_at_;  // by request
  std::vector<Answer> answers_;

  base::Instant paced_next_{0};
  base::Instant cycle_start_{0};
  uint64_t cycle_left_ = 0;
  bool cycle_known_ = false;

  base::Instant counts_since_{0};
  Counts counts_;
};

}  // namespace headgate::capacity
