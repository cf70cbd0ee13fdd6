// The parts of a process that a Checker decides with. For one thread.
#pragma once

#include <cstdint>

#include "headgate/limiter/bucket_name.h"
#include "headgate/limiter/decider.h"
#include "headgate/limiter/observer.h"
#include "headgate/store/store.h"

namespace headgate::limiter {

struct Means {
  Decider& decider;
  const BucketNaming naming;  // of buckets in a shared store
  store::Store& store;        // of this process: its hash secret and its table of limits
  const Observers& observers;
  const uint32_t worker;  // the number of this thread for the observers
};

}  // namespace headgate::limiter
