#include "headgate/base/rate_limit_form.h"

#include <algorithm>
#include <array>

namespace headgate::base {
namespace {

// In the order of RateLimitDialect.
constexpr std::array<std::string_view, 10> kDialects = {"all",       "draft",  "draft-7", "draft-6",
                                                        "draft-3",   "github", "twitter", "openai",
                                                        "anthropic", "none"};
// In the order of QuotaUnit.
constexpr std::array<std::string_view, 6> kUnits = {
    "requests", "tokens", "input-tokens", "output-tokens", "content-bytes", "concurrent-requests"};

}  // namespace

std::string_view Name(RateLimitDialect dialect) { return kDialects[static_cast<size_t>(dialect)]; }

std::optional<RateLimitDialect> DialectByName(std::string_view name) {
  const auto found = std::find(kDialects.begin(), kDialects.end(), name);
  if (found == kDialects.end()) return std::nullopt;
  return static_cast<RateLimitDialect>(found - kDialects.begin());
}

std::string DialectNames() {
  std::string names;
  for (const std::string_view name : kDialects) {
    if (!names.empty()) names += name == kDialects.back() ? " or " : ", ";
    names += name;
  }
  return names;
}

std::string_view Name(QuotaUnit unit) { return kUnits[static_cast<size_t>(unit)]; }

}  // namespace headgate::base
