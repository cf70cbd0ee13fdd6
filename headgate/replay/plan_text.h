// A plan as text for people: the clients with the most requests, and a summary.
#pragma once

#include <string>

#include "headgate/base/time.h"
#include "headgate/replay/share_plan.h"

namespace headgate::replay {

// `cycle` is that of the pool.
std::string TextOf(const SharePlan& plan, base::Duration cycle);

}  // namespace headgate::replay
