// The words of a scenario's rule: N per DURATION [algorithm A] [burst B] [align first_hit] [queue]
// [count_denied], in any order; further limits follow behind "and".
#pragma once

#include <vector>

#include "headgate/algorithm/limit.h"
#include "headgate/testing/line_reader.h"

namespace headgate::testing {

// Reads the rest of the line. Meaningless where the reader has failed afterwards.
std::vector<algorithm::Limit> TakeLimits(LineReader& line);

}  // namespace headgate::testing
