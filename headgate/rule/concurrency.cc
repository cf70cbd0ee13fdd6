#include "headgate/rule/concurrency.h"

#include <fmt/format.h>

#include "headgate/permit/permit.h"
#include "headgate/rule/duration.h"

namespace headgate::rule {
std::string TooManyInFlight(uint64_t max) {
  return fmt::format("at most {} requests of a key can be in flight, not {}",
                     permit::kPermitsPerKeyMax, max);
}

std::optional<std::string> ProblemWith(const ConcurrencyLimit& limit) {
  if (limit.max > permit::kPermitsPerKeyMax) return TooManyInFlight(limit.max);
  if (limit.ttl < permit::kTtlMin || limit.ttl > permit::kTtlMax) {
    return fmt::format("the ttl must be from {} to {}, not {}", FormatDuration(permit::kTtlMin),
                       FormatDuration(permit::kTtlMax), FormatDuration(limit.ttl));
  }
  return std::nullopt;
}

std::string Describe(const ConcurrencyLimit& limit) {
  return fmt::format("{} in flight, {}, ttl {}", limit.max, kConcurrency,
                     FormatDuration(limit.ttl));
}

}  // namespace headgate::rule
