// Reads the costs of a limit of a rule file that are known only at the end of a request:
// cost: {of: response_bytes, per: 1KiB, reserve: 64KiB}, count: {status: [401, 403]}.
#pragma once

#include <optional>

#include "headgate/rule/read/fields.h"
#include "headgate/rule/rule_set.h"

namespace headgate::rule::read {

// Absent if the limit has neither, or if there is a problem, which is reported. `limit_fields` are
// those of the limit.
std::optional<SizeCost> ReadLaterCost(FieldReader& reader, Fields& limit_fields);

// Reports a problem if the limit cannot have the cost that it has.
void CheckSizeCost(FieldReader& reader, Fields& limit_fields, const RuleLimit& limit);

}  // namespace headgate::rule::read
