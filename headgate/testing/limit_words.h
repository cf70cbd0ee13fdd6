// The words of a scenario's rule: N per DURATION [algorithm A] [burst B] [align first_hit] [queue] [count_denied], in
// any order.
#pragma once

#include "headgate/algorithm/limit.h"
#include "headgate/testing/line_reader.h"

namespace headgate::testing {

// Reads the rest of the line. Meaningless where the reader has failed afterwards.
algorithm::Limit TakeLimit(LineReader& line);

}  // namespace headgate::testing
