// Reads `max` and `plans` of a limit of a rule file.
#pragma once

#include "headgate/rule/read/fields.h"
#include "headgate/rule/rule_set.h"

namespace headgate::rule::read {

// Sets the limits that requests may bring, if the limit has some. Reports problems.
void ReadGivenLimits(FieldReader& reader, Fields& limit_fields, RuleLimit& limit);

}  // namespace headgate::rule::read
