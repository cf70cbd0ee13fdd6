// Reads one `rate_limit` of a rule file, or one item of `rate_limits`, into a Rule.
#pragma once

#include <span>

#include "headgate/rule/fields.h"
#include "headgate/rule/rule_set.h"

namespace headgate::rule {

// Whether the limit is the only one of its rule or an item of `rate_limits`.
enum class LimitForm : uint8_t { kOnly, kItem };

// Adds the limit in `mappings` to the rule, or reports its problems. There are several mappings if
// `rate_limit` is repeated; they are read as one.
void ReadLimit(FieldReader& reader, std::span<const DocumentNode* const> mappings, LimitForm form,
               Rule& rule);

}  // namespace headgate::rule
