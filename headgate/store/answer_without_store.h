// Requests that every shared store answers alike, without reading the bucket.
#pragma once

#include <optional>

#include "headgate/store/shared_store.h"

namespace headgate::store {

// Answers a request that does not need the store: under a limit of 0 requests, a refund to a queue,
// or for a lease under a limit that grants none. Such a request leaves the bucket unchanged, so
// that consumed requests stay consumed if the limit is raised again.
std::optional<SharedAnswer> AnswerWithoutStore(const SharedRequest& request);

}  // namespace headgate::store
