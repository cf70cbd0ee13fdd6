#include "headgate/algorithm/fair_share_options.h"

#include <fmt/format.h>

namespace headgate::algorithm {
namespace {

constexpr base::Duration kCycleMax = base::Duration(int64_t{1} << 60);

}  // namespace

absl::Status FairShareOptions::Validate() const {
  if (capacity < 1 || capacity > kFairCapacityMax) {
    return absl::InvalidArgumentError(
        fmt::format("a pool's capacity is from 1 to {}, not {}", kFairCapacityMax, capacity));
  }
  if (cycle.count() <= 0 || cycle > kCycleMax) {
    return absl::InvalidArgumentError("a pool's cycle must be longer than 0 and at most 36 years");
  }
  if (reservation.denominator < 1 || reservation.denominator > kFairRatioDenominatorMax ||
      reservation.numerator > reservation.denominator) {
    return absl::InvalidArgumentError(
        fmt::format("a reservation is from 0 to 1 in steps of 1/{}, not {}/{}",
                    kFairRatioDenominatorMax, reservation.numerator, reservation.denominator));
  }
  if (minimum_cycle.count() < 0 || minimum_cycle > cycle) {
    return absl::InvalidArgumentError("minimum_cycle must be no longer than the cycle");
  }
  if (clients_max < 1 || clients_max > kFairClientsMax) {
    return absl::InvalidArgumentError(
        fmt::format("a pool has from 1 to {} clients, not {}", kFairClientsMax, clients_max));
  }
  return absl::OkStatus();
}

}  // namespace headgate::algorithm
