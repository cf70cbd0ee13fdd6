// The words for a request that the shared store has not answered.
#pragma once

#include <string>

#include "headgate/base/status.h"
#include "headgate/limiter/request.h"
#include "headgate/limiter/settled.h"
#include "headgate/rule/rule_set.h"

namespace headgate::limiter {

// "rule …"; `rule` is null for a limit that the request brought.
std::string LabelOf(const rule::Rule* rule);

// The error of a request to a limit of `rule`. `perhaps_done`: the store may have executed it.
absl::Status Unavailable(Operation operation, const rule::Rule* rule, bool perhaps_done,
                         NoAnswer why);

}  // namespace headgate::limiter
