// Reads the `cost` of a limit of a rule file: {of: response_bytes, per: 1KiB, reserve: 64KiB}.
#pragma once

#include <optional>

#include "headgate/rule/fields.h"
#include "headgate/rule/rule_set.h"

namespace headgate::rule {

// Absent if there is a problem, which is reported. `limit_fields` are those of the limit.
std::optional<SizeCost> ReadSizeCost(FieldReader& reader, Fields& limit_fields,
                                     const DocumentNode& cost);

// Reports it if the limit cannot have its cost.
void CheckSizeCost(FieldReader& reader, Fields& limit_fields, const RuleLimit& limit);

}  // namespace headgate::rule
