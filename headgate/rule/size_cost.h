// A cost that is known only when the request has ended: the size of its body or of the response's,
// or whether the status of the answer counts.
//
//   cost: {of: response_bytes, per: 1KiB, reserve: 64KiB}
//   count: {status: [401, 403]}
//
// So the reserve is taken first, and the difference is settled when the request has ended
// (limiter/size_charge.h). A count by status is a size of 0 or 1.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/rule/status_count.h"

namespace headgate::rule {

// The largest size in a rule.
inline constexpr uint64_t kSizeMax = uint64_t{1} << 50;

struct SizeCost {
  // kSent is not a word of rules: the cost stays as it was taken, once the request is sent.
  enum class Of : uint8_t { kRequestBytes, kResponseBytes, kCountedAnswers, kSent };

  Of of = Of::kResponseBytes;
  uint64_t per_bytes = 1;      // of one unit; at least 1
  uint64_t reserve_bytes = 1;  // taken before the size is known; at least 1
  StatusCount counted{};       // of kCountedAnswers; empty for sizes

  // The units for this many bytes, rounded up.
  uint64_t UnitsOf(uint64_t bytes) const {
    return bytes / per_bytes + (bytes % per_bytes != 0 ? 1 : 0);
  }
  bool counts_bytes() const { return of == Of::kRequestBytes || of == Of::kResponseBytes; }
  uint64_t reserve() const { return UnitsOf(reserve_bytes); }

  bool operator==(const SizeCost&) const = default;
};

// "request_bytes", "response_bytes", "answers".
std::string_view Name(SizeCost::Of of);

// Parses a size: a whole number of bytes from 1 to kSizeMax, with B, KiB, MiB, GiB or TiB, or
// without a unit.
absl::StatusOr<uint64_t> ParseSize(std::string_view text);
// In the largest unit that makes it a whole number: "64KiB", "1500B".
std::string FormatSize(uint64_t bytes);

// Describes a cost for people: "costs 1 for each 1KiB of response_bytes, reserve 64KiB", "counts
// answers with status 401".
std::string Describe(const SizeCost& cost);

}  // namespace headgate::rule
