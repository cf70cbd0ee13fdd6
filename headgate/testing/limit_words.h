// The words of a rule in a scenario: N per DURATION [algorithm A] [burst B] [align first_hit]
// [queue] [count_denied] [overdraw] [block DURATION,…], in any order. "and" separates several
// limits.
#pragma once

#include <vector>

#include "headgate/algorithm/limit.h"
#include "headgate/testing/line_reader.h"

namespace headgate::testing {

// Reads the rest of the line. The result is meaningless if the reader has failed.
std::vector<algorithm::Limit> TakeLimits(LineReader& line);

}  // namespace headgate::testing
