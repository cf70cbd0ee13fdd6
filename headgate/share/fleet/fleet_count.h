// The number of replicas that share the pool of a fleet. While the store is unreachable, each
// replica divides the capacity by this number. The first known one of these:
//
//   --store-instances
//   as counted by the store, once it has counted others
//   as the process before knew it (a handover)
//   1, and it is not known
//
// A process that starts while the store is unreachable has not counted the instances. Then it uses
// the number from its predecessor, but only until the store has had time to count, because the
// fleet may have been scaled down meanwhile. From any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "headgate/base/clock.h"

namespace headgate::share::fleet {

class FleetCount {
 public:
  // Once the store answers, it has counted all instances within this time.
  static constexpr base::Duration kTimeToCount = std::chrono::seconds(5);

  // `given`: 0 if the setting is absent. `counted` returns 1 if no other instance was counted.
  FleetCount(uint32_t given, std::function<uint32_t()> counted);

  void TakeOver(uint32_t handed) { handed_ = handed; }
  // A round was written.
  void OnAnswer(base::BootTime now);

  // At least 1.
  uint32_t count(base::BootTime now) const;
  // Whether the number is given, counted or handed over, not just assumed.
  bool is_known() const;
  // For the process after this one; 0: it is not known.
  uint32_t HandOver(base::BootTime now) const { return is_known() ? count(now) : 0; }

 private:
  static constexpr int64_t kNever = -1;

  const uint32_t given_;
  const std::function<uint32_t()> counted_;
  std::atomic<uint32_t> handed_{0};
  std::atomic<int64_t> answered_at_{kNever};  // the first time
};

}  // namespace headgate::share::fleet
