// The rig of the capacity tests: a controller in front of a benchmark upstream.
#pragma once

#include <cmath>
#include <string>

#include <fmt/format.h>

#include "tests/capacity/overload.h"

namespace headgate::capacity {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// The upstream can do this much, if a test says nothing else: 10 workers, 10 ms each.
inline constexpr double kBest = 1000;

struct Rig {
  explicit Rig(const OverloadOptions& options, const CapacityOptions& capacity = {})
      : ours([&] {
          CapacityOptions seeded = capacity;
          seeded.seed = options.seed;
          return seeded;
        }()),
        overload(options, ours) {}

  // How far the capacity is from the truth, 0.1 for 10 %; 1 while it is unknown.
  double ErrorOf(double best) const { return std::abs(ours.PerSecond().value_or(0) / best - 1); }

  // Runs for `time`; returns the largest error in it.
  double RunAndCompare(base::Duration time, double best) {
    double worst = 0;
    overload.Run(time, [&] { worst = std::max(worst, ErrorOf(best)); });
    return worst;
  }

  // Runs for `time`; returns when the capacity was last more than 15 % off, in seconds.
  double TimeToFollow(base::Duration time, double best) {
    const base::Instant start = overload.now();
    double last = 0;
    overload.Run(time, [&] {
      if (ErrorOf(best) > 0.15)
        last = std::chrono::duration<double>(overload.now() - start).count();
    });
    return last;
  }

  Counts RunAndCount(base::Duration time) {
    overload.TakeCounts();
    overload.Run(time);
    return overload.TakeCounts();
  }

  uint32_t limit() const { return ours.limit(); }

  Ours ours;
  Overload overload;
};

inline std::string ToString(Service kind) {
  return kind == Service::kFixed        ? "fixed"
         : kind == Service::kBimodal    ? "bimodal"
         : kind == Service::kTwoClasses ? "two classes"
                                        : "exponential";
}
inline std::string ToString(Pool pool) {
  return pool == Pool::kNone ? "no pool" : pool == Pool::kPaced ? "paced pool" : "pool of 10 s";
}

inline constexpr Service kServices[] = {Service::kFixed, Service::kExponential, Service::kBimodal};
inline constexpr Pool kPools[] = {Pool::kNone, Pool::kPaced, Pool::kCycle};

}  // namespace headgate::capacity
