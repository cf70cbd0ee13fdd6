// Fair share: how a pool's capacity is divided among its clients for one cycle, from what each
// asked for in the last.
//
//   D = capacity·weight/Σweights      want = max(demand, D·reservation)      gap = D − want
//
// Who wants less than D gives, who wants more takes; what nobody wants goes back to the givers, in
// proportion to what they gave. Four clients that share 40 (D = 10) and asked for 3, 15, 50 and 10:
// the first gives 7, and the second and third, who lack 5 and 40, take 7/9 and 56/9 of it: 3, 11,
// 16 and 10.
//
// Pure and exact: shares are fractions until they are made whole by largest remainder, so that they
// always sum to the capacity. Definition: docs/reference/algorithms.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace headgate::algorithm {

// Bounds, and the overflow argument of Divide. In units of 1/(Σweights·denominator) every share is
// a whole number below 2^32·2^32, so that the product of any two of them fits in 128 bits.
inline constexpr uint64_t kFairCapacityMax = 0xffff'ffff;  // also what a demand saturates at
inline constexpr uint32_t kFairClientsMax = 4096;
inline constexpr uint32_t kFairWeightMax = 1024;
inline constexpr uint32_t kFairRatioDenominatorMax = 1000;
static_assert(uint64_t{kFairClientsMax} * kFairWeightMax * kFairRatioDenominatorMax <= uint64_t{1}
                                                                                           << 32);

// numerator/denominator, from 0 to 1.
struct Ratio {
  uint32_t numerator = 0;
  uint32_t denominator = 1;
  bool operator==(const Ratio&) const = default;
};

struct ClientDemand {
  std::string_view name;  // different from all others; settles who gets the last whole one
  std::optional<uint64_t> demand{};  // without one, as for a client that is new, it counts as D
  uint32_t weight = 1;               // 1 or more
};

// The capacity of each client, in the order of `clients`; sums to `capacity`. All arguments are
// within the bounds above.
std::vector<uint64_t> Divide(uint64_t capacity, Ratio reservation,
                             std::span<const ClientDemand> clients);

}  // namespace headgate::algorithm
