// How a decision was made, and so how reliable it is. Fronts report the mode if it is not the usual
// one.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace headgate::limiter {

enum class Mode : uint8_t {
  kMemory,  // by this process's own buckets, which are exact
  kExact,   // by one call to the shared store
  kLeased,  // from a lease on the shared bucket
  kLocal,   // the store is unreachable: by this instance's share of the limit
  kOpen,    // the store is unreachable: allowed, uncounted
  kClosed,  // the store is unreachable: refused
};
inline constexpr int kModeCount = 6;

inline std::string_view Name(Mode mode) {
  constexpr std::array<std::string_view, kModeCount> kNames{"memory", "exact", "leased",
                                                            "local",  "open",  "closed"};
  return kNames[static_cast<size_t>(mode)];
}

// Whether a bucket has counted the request.
inline bool IsCounted(Mode mode) { return mode != Mode::kOpen && mode != Mode::kClosed; }

// Whether the store could not be asked.
inline bool IsDegraded(Mode mode) { return mode >= Mode::kLocal; }

}  // namespace headgate::limiter
