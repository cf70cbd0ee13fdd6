// A cost that is the size of a body: of the request's or of the response's.
//
//   cost: {of: response_bytes, per: 1KiB, reserve: 64KiB}
//
// The size is not known when the request is decided. So the reserve is taken first, and the
// difference is settled when the request has ended (limiter/size_charge.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headgate/base/status.h"

namespace headgate::rule {

// The largest size in a rule.
inline constexpr uint64_t kSizeMax = uint64_t{1} << 50;

struct SizeCost {
  enum class Of : uint8_t { kRequestBytes, kResponseBytes };

  Of of = Of::kResponseBytes;
  uint64_t per_bytes = 1;      // of one unit; at least 1
  uint64_t reserve_bytes = 1;  // taken before the size is known; at least 1

  // The units for this many bytes, rounded up.
  uint64_t UnitsOf(uint64_t bytes) const {
    return bytes / per_bytes + (bytes % per_bytes != 0 ? 1 : 0);
  }
  uint64_t reserve() const { return UnitsOf(reserve_bytes); }

  bool operator==(const SizeCost&) const = default;
};

// "request_bytes", "response_bytes".
std::string_view Name(SizeCost::Of of);

// Parses a size: a whole number of bytes from 1 to kSizeMax, with B, KiB, MiB, GiB or TiB, or
// without a unit.
absl::StatusOr<uint64_t> ParseSize(std::string_view text);
// In the largest unit that makes it a whole number: "64KiB", "1500B".
std::string FormatSize(uint64_t bytes);

// Describes a cost for people: "1 for each 1KiB of response_bytes, reserve 64KiB".
std::string Describe(const SizeCost& cost);

}  // namespace headgate::rule
