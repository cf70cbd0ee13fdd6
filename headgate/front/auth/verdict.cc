#include "headgate/front/auth/verdict.h"

namespace headgate::front::auth {

std::string_view Name(Outcome outcome) {
  static constexpr std::array<std::string_view, kOutcomeCount> kNames = {
      "allowed", "unmatched", "exempt",  "untrusted", "refused",
      "missing", "invalid",   "no_rule", "denied",    "unavailable"};
  return kNames[static_cast<size_t>(outcome)];
}

}  // namespace headgate::front::auth
