// A shared store under test, in virtual time, for tests that ask it and wait for its answers.
#pragma once

#include <functional>

#include "headgate/base/time.h"
#include "headgate/store/shared_store.h"

namespace headgate::testing {

// An empty store, a clock for it, and a way to wait for its answers.
class SharedStoreRig {
 public:
  virtual ~SharedStoreRig() = default;
  virtual store::SharedStore& store() = 0;
  // Sets the store's clock, which then stands still until the next call.
  virtual void SetNow(base::Instant now) = 0;
  // Runs the store until `answered` returns true. Returns false on timeout.
  virtual bool Wait(const std::function<bool()>& answered) = 0;
};

}  // namespace headgate::testing
