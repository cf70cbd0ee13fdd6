// Requests that every shared store answers alike, without reading the bucket.
#pragma once

#include <optional>

#include "headgate/store/shared_store.h"

namespace headgate::store {

// The answer to a request that needs no store: a limit of 0 requests, a refund to a queue, a lease
// of a bucket that gives none. Such a request leaves the bucket unchanged, so that consumed
// requests stay consumed if the limit is raised again.
std::optional<SharedAnswer> AnswerWithoutStore(const SharedRequest& request);

}  // namespace headgate::store
