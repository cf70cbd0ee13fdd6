// How a decision came about: what stands behind its promise. Fronts say it where it is not the
// usual one.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace headgate::limiter {

enum class Mode : uint8_t {
  kMemory,  // this process's own buckets: exact here
  kExact,   // one step at the shared store
  kLeased,  // from a lease on the shared bucket
  kLocal,   // the store cannot be asked: this instance's share of the limit
  kOpen,    // the store cannot be asked: allowed, uncounted
  kClosed,  // the store cannot be asked: refused
};
inline constexpr int kModeCount = 6;

inline std::string_view Name(Mode mode) {
  constexpr std::array<std::string_view, kModeCount> kNames{"memory", "exact", "leased",
                                                            "local",  "open",  "closed"};
  return kNames[static_cast<size_t>(mode)];
}

// The store could not be asked.
inline bool IsDegraded(Mode mode) { return mode >= Mode::kLocal; }

}  // namespace headgate::limiter
