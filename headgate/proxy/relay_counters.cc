#include "headgate/proxy/relay_counters.h"

namespace headgate::proxy {

std::string_view Name(RelayOutcome outcome) {
  constexpr std::array<std::string_view, kRelayOutcomeCount> kNames = {
      "answered",    "unreachable", "broken",    "too_slow",  "no_place",   "slow_client",
      "slow_reader", "unsuitable",  "cut_short", "malformed", "client_gone"};
  return kNames[static_cast<size_t>(outcome)];
}

}  // namespace headgate::proxy
