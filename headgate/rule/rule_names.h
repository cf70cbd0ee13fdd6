// The names of rules and periods.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "headgate/algorithm/limit.h"
#include "headgate/base/time.h"
#include "headgate/rule/descriptor.h"

namespace headgate::rule {

// A rule's identity: unambiguous for any texts. The identity of a domain depends only on its name.
std::string DomainIdentity(std::string_view domain);
// The identity of the child {key: value} of the node with identity `parent`.
std::string ChildIdentity(std::string_view parent, std::string_view key, std::string_view value);

// "second", "minute", "hour", "day", "week", "month", "year", in any case.
std::optional<Unit> UnitByName(std::string_view name);

// "second" and so on.
std::string_view Name(Unit unit);

// The length of the unit in Envoy: a month has 30 days, a year 365.
base::Duration PeriodOf(Unit unit);

// The unit of Envoy's protocol for the period of this limit, if there is one.
std::optional<Unit> UnitOf(const algorithm::LimitSpec& spec);

}  // namespace headgate::rule
