// Limits that a request may bring, from a verified token or a trusted peer: as a number of
// requests, or as the name of a plan. The rule sets the bounds.
//
//   rate_limit: {unit: minute, requests_per_unit: 10, max: 1000, plans: {free: 10, gold: 500}}
//
//   "gold" ─▶ 500 per minute     "700" ─▶ 700     "5000" ─▶ 1000     "x" ─▶ 10, the rule's own
//
// The bucket stays the same, whatever limit a request brings. A limit that changes never adds
// allowance to a bucket, so nobody gains by changing between plans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/algorithm/limit.h"

namespace headgate::rule {

struct GivenLimits {
  static constexpr size_t kPlansMax = 1000;

  struct Plan {
    std::string name;
    algorithm::Limit limit;
  };

  // The most requests per period that a number can give; a larger number counts as this. Absent:
  // numbers are not accepted.
  std::optional<uint32_t> max{};
  std::vector<Plan> plans{};  // in the order of their names
};

// How a given text was understood.
enum class Given : uint8_t {
  kPlan,
  kNumber,
  kCapped,   // a number above the rule's max
  kUnknown,  // neither: the rule's own limit counts
};
inline constexpr size_t kGivenKinds = 4;

struct GivenChoice {
  Given given = Given::kUnknown;
  size_t plan = 0;      // for kPlan: the plan's index
  uint32_t number = 0;  // of kNumber and kCapped
};

// A plan goes before a number. A number has digits only, without zeros before it; only zeros
// may follow a decimal point.
GivenChoice ChooseGiven(const GivenLimits& limits, std::string_view text);

// The limit `own` with this many requests per period. If `own` has a burst, it is scaled with the
// requests and rounded up.
algorithm::LimitSpec WithRequests(const algorithm::LimitSpec& own, uint64_t requests);

bool AreAlike(const std::shared_ptr<const GivenLimits>& a,
              const std::shared_ptr<const GivenLimits>& b);

// Describes them for people: "max 1000, plans free 10, gold 500".
std::string Describe(const GivenLimits& limits);

}  // namespace headgate::rule
