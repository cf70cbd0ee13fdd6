#include "headgate/share/share_options.h"

#include <fmt/format.h>

#include "absl/container/flat_hash_set.h"

namespace headgate::share {
namespace {

using algorithm::kFairCapacityMax;
using algorithm::kFairWeightMax;

constexpr size_t kClientIdBytesMax = 1024;

absl::Status CheckFindCapacity(const ShareOptions& options) {
  const base::Duration cycle = options.pool.cycle;
  if (options.pool.capacity != 0) {
    return absl::InvalidArgumentError(fmt::format(
        "a pool's capacity is either a number or auto, not {} and auto", options.pool.capacity));
  }
  HEADGATE_RETURN_IF_ERROR(options.find_capacity->Validate());
  if (cycle < std::chrono::milliseconds(1) || cycle > std::chrono::hours(24)) {
    return absl::InvalidArgumentError(
        "with capacity: auto, a pool's cycle is from 1 millisecond to 1 day");
  }
  const uint64_t per_second = options.find_capacity->per_second_max;
  // per_second is at most 10^7, a cycle below 10^5 s.
  const auto milliseconds = static_cast<uint64_t>(cycle / std::chrono::milliseconds(1)) + 1;
  if (per_second * milliseconds / 1000 > kFairCapacityMax) {
    return absl::InvalidArgumentError(
        fmt::format("a pool's capacity is at most {} per cycle, but per_second_max allows {} per "
                    "second; lower it, or make the cycle shorter",
                    kFairCapacityMax, per_second));
  }
  return absl::OkStatus();
}

absl::Status CheckWeights(const std::vector<ClientWeight>& weights) {
  absl::flat_hash_set<std::string> seen;
  for (const ClientWeight& entry : weights) {
    if (entry.client.empty()) return absl::InvalidArgumentError("a weight needs a client's name");
    if (entry.weight < 1 || entry.weight > kFairWeightMax) {
      return absl::InvalidArgumentError(
          fmt::format("the weight of client \"{}\" is from 1 to {}, not {}", entry.client,
                      kFairWeightMax, entry.weight));
    }
    if (!seen.insert(entry.client).second) {
      return absl::InvalidArgumentError(fmt::format("client \"{}\" has two weights", entry.client));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ShareOptions::Validate() const {
  algorithm::FairShareOptions complete = pool;
  if (find_capacity) {
    HEADGATE_RETURN_IF_ERROR(CheckFindCapacity(*this));
    complete.capacity = kFairCapacityMax;
  } else if (pool.capacity == 0) {
    return absl::InvalidArgumentError("a pool needs a capacity: a number per cycle, or auto");
  }
  HEADGATE_RETURN_IF_ERROR(complete.Validate());
  HEADGATE_RETURN_IF_ERROR(CheckWeights(weights));
  if (client_id_bytes_max < 1 || client_id_bytes_max > kClientIdBytesMax) {
    return absl::InvalidArgumentError(fmt::format("client_id_bytes_max is from 1 to {}, not {}",
                                                  kClientIdBytesMax, client_id_bytes_max));
  }
  if (anonymous.empty() || anonymous.size() > kClientIdBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("the name of the anonymous client has from 1 to {} bytes, not {}",
                    kClientIdBytesMax, anonymous.size()));
  }
  return absl::OkStatus();
}

}  // namespace headgate::share
