// Mappings with a known reading problem: some applications read requests in a way that no mapping
// can know (docs/reference/mappings.md, "How others read a request").
#pragma once

#include <span>

#include "headgate/mapping/mapping.h"
#include "headgate/rule/problem.h"

namespace headgate::mapping {

// Adds one warning for each problem of a mapping. `marks`: of the mappings.
void WarnOfReadings(const MappingSet& set, std::span<const rule::Mark> marks,
                    rule::ProblemList& warnings);

}  // namespace headgate::mapping
