// Reads one `rate_limit` of a rule file, or one item of `rate_limits`, into a Rule.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "headgate/rule/read/fields.h"
#include "headgate/rule/rule_set.h"

namespace headgate::rule::read {

// Whether the limit is the only one of its rule or an item of `rate_limits`.
enum class LimitForm : uint8_t { kOnly, kItem };

// Whether a limit only has Envoy's fields, and so Envoy's defaults, or also some of ours.
enum class LimitFields : uint8_t { kEnvoys, kOurs };

// Adds the limit in `mappings` to the rule, or reports its problems. There are several mappings if
// `rate_limit` is repeated; they are read as one. `inherited`: the fields that the limit has
// besides its own. Returns whether it has a field about stores.
bool ReadLimit(FieldReader& reader, std::span<const DocumentNode* const> mappings, LimitForm form,
               LimitFields inherited, Rule& rule);

// A limit of a roll-out inherits the fields about stores of the limits [first, end) of its rule. In
// general that is the limit at the same position. The last limit of the roll-out also inherits from
// all later limits of the rule, and a limit beyond the rule's last one inherits from that last one.
struct InheritedPlaces {
  size_t first;
  size_t end;
};

// For the limit in this place of a roll-out with `count` limits.
inline InheritedPlaces InheritedBy(size_t place, size_t count, size_t rule_count) {
  if (rule_count == 0) return {.first = 0, .end = 0};
  const size_t first = std::min(place, rule_count - 1);
  return {.first = first, .end = place + 1 == count ? rule_count : first + 1};
}

}  // namespace headgate::rule::read
