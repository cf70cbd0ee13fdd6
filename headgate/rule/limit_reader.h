// One `rate_limit` of a rule file, or one item of `rate_limits`, into a Rule.
#pragma once

#include <span>

#include "headgate/rule/fields.h"
#include "headgate/rule/rule_set.h"

namespace headgate::rule {

// Whether it is the only one of its rule, or an item of `rate_limits`.
enum class LimitForm : uint8_t { kOnly, kItem };

// Adds what the mappings (several where `rate_limit` is doubled: they are read as one) say to the
// rule, or reports what is wrong with them.
void ReadLimit(FieldReader& reader, std::span<const DocumentNode* const> mappings, LimitForm form,
               Rule& rule);

}  // namespace headgate::rule
