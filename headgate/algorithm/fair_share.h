// Fair share: divides the capacity of a pool among its clients for one cycle, according to what
// each client asked for in the last cycle.
//
//   D = capacity·weight/Σweights
//   want = max(min(demand, capacity), D·reservation)      gap = D − want
//
// A client that wants less than D gives, and a client that wants more takes. The part that no
// client wants goes back to the givers, in proportion to their gifts. Example: four clients share
// 40 (D = 10) and asked for 3, 15, 40 and 10. The first gives 7. The second and third lack 5 and
// 30, so they take 1 and 6 of it. The result is 3, 11, 16 and 10. With Lending::kMaxMin both take
// 3.5.
//
// Pure and exact: shares are fractions until the largest-remainder method makes them whole, so they
// always sum to the capacity. Definition: docs/reference/algorithms.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace headgate::algorithm {

// Bounds that exclude overflow in Divide. In units of 1/(Σweights·denominator) every share is a
// whole number below 2^32·2^32, so the product of any two shares fits in 128 bits.
inline constexpr uint64_t kFairCapacityMax = 0xffff'ffff;  // demands saturate at this value too
inline constexpr uint32_t kFairClientsMax = 4096;
inline constexpr uint32_t kFairWeightMax = 1024;
inline constexpr uint32_t kFairRatioDenominatorMax = 1000;
static_assert(uint64_t{kFairClientsMax} * kFairWeightMax * kFairRatioDenominatorMax <= uint64_t{1}
                                                                                           << 32);

// The sum of a demand, which is at most kFairCapacityMax, and any amount.
inline uint64_t FairSum(uint64_t demand, uint64_t more) {
  return more > kFairCapacityMax - demand ? kFairCapacityMax : demand + more;
}

// The fraction numerator/denominator, from 0 to 1.
struct Ratio {
  uint32_t numerator = 0;
  uint32_t denominator = 1;
  bool operator==(const Ratio&) const = default;
};

// How clients that want more than D divide the surplus of the others.
enum class Lending : uint8_t {
  kProportional,  // in proportion to their gaps
  kMaxMin,        // equally (by weight), but no client gets more than its gap
};

// The part of its shares that a client has lost by rounding so far, in units of 1/kFairCreditUnit,
// from −1 to 1.
using FairCredit = int64_t;
inline constexpr FairCredit kFairCreditUnit = FairCredit{1} << 44;

struct ClientDemand {
  std::string_view name;             // unique; decides which client gets the last whole unit
  std::optional<uint64_t> demand{};  // absent for a new client, which is treated as if it wanted D
  uint32_t weight = 1;               // at least 1
  // From the last division. Counts only if there are more clients than the capacity has units.
  FairCredit credit = 0;
};

// Returns the capacity of each client, in the order of `clients`; they sum to `capacity`. All
// arguments must be within the bounds above. `credits` gets the credits for the next division, so
// that nobody is left out for ever if there are more clients than units.
std::vector<uint64_t> Divide(uint64_t capacity, Ratio reservation,
                             std::span<const ClientDemand> clients,
                             Lending lending = Lending::kProportional,
                             std::vector<FairCredit>* credits = nullptr);

}  // namespace headgate::algorithm
