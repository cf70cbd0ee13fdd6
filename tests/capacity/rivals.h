// Published controllers of requests in flight, to compare ours with. They answer how many may be in
// flight, and nothing about the capacity. The constants are those
// of the published formulas, without a floor of 20.
#pragma once

#include <memory>
#include <string_view>

#include "tests/capacity/guard.h"

namespace headgate::capacity {

inline constexpr std::string_view kRivals[] = {"Gradient2", "Vegas", "AIMD"};

std::unique_ptr<Guard> MakeRival(std::string_view name);

}  // namespace headgate::capacity
