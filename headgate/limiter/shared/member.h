// A request to a shared bucket, kept until its answer comes.
#pragma once

#include <span>

#include "headgate/base/hash.h"
#include "headgate/base/time.h"
#include "headgate/limiter/decider.h"
#include "headgate/limiter/settled.h"
#include "headgate/store/limit_table.h"
#include "headgate/store/store.h"

namespace headgate::limiter::shared {

struct Member {
  base::Hash128 key;
  store::LimitHandle limit;
  algorithm::Cost cost;
  store::Operation operation;
  SharedTerms terms;
  base::Instant now;
  std::span<const store::LimitChange> history;  // kept by the request's Pending
  store::Joined joined;
  Settled taken{};  // of an undo: how the cost was taken

  bool takes() const { return operation == store::Operation::kTake && cost > 0; }
};

}  // namespace headgate::limiter::shared
