// The last step of a request: its answer, from the decisions of its buckets and permits.
#pragma once

#include "headgate/base/status.h"
#include "headgate/limiter/response.h"

namespace headgate::limiter {

struct Task;

// Fills in the response, and reports it to the observers. `passthrough`: whatever was decided, the
// request may pass. Unavailable if the store was not asked for a limit that refuses requests then.
absl::Status Conclude(const Task& task, bool passthrough, Response& response);

}  // namespace headgate::limiter
