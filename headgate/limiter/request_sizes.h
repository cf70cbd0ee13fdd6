// Limits of a request with a cost by size, or a count by status: what they have taken, for the
// caller to correct later.
#pragma once

#include <optional>

#include "headgate/algorithm/decision.h"
#include "headgate/limiter/published_rules.h"
#include "headgate/limiter/request.h"
#include "headgate/limiter/response.h"
#include "headgate/rule/descriptor.h"
#include "headgate/rule/size_cost.h"

namespace headgate::limiter {

struct Task;

// The cost of the request for a limit with this cost by size, if it has one.
algorithm::Cost CostOf(const Request& request, const rule::Descriptor& descriptor,
                       const std::optional<rule::SizeCost>& size);

// The cost by size of a limit for a descriptor; null if the request states the cost. But a stated
// cost can be given back by status.
const rule::SizeCost* SizeOf(const rule::Descriptor& descriptor, const PublishedLimit& limit);

// Fills in Response::sized.
void TellSizes(const Task& task, Response& response);

// Makes a step of a charge the only request to a bucket. False if there is nothing to ask.
bool AddStep(const Task& task, const SizeCharge& charge, const SizeStep& step);

}  // namespace headgate::limiter
