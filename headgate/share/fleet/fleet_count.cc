#include "headgate/share/fleet/fleet_count.h"

#include <algorithm>
#include <utility>

namespace headgate::share::fleet {

FleetCount::FleetCount(uint32_t given, std::function<uint32_t()> counted)
    : given_(given), counted_(std::move(counted)) {}

void FleetCount::OnAnswer(base::BootTime now) {
  int64_t never = kNever;
  answered_at_.compare_exchange_strong(never, now.ns);
}

uint32_t FleetCount::count(base::BootTime now) const {
  if (given_ > 0) return given_;
  const uint32_t counted = counted_();
  if (counted > 1) return counted;
  const int64_t answered_at = answered_at_;
  if (answered_at != kNever && now - base::BootTime{answered_at} >= kTimeToCount) return 1;
  return std::max(1u, handed_.load());
}

bool FleetCount::is_known() const {
  return given_ > 0 || counted_() > 1 || handed_ > 0 || answered_at_ != kNever;
}

}  // namespace headgate::share::fleet
