// Waits until a shared store answers, on event loops that do not run yet. A process that takes over
// from another one does so before it accepts: its first requests would find no store otherwise.
#pragma once

#include <span>

#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/net/event_loop.h"
#include "headgate/store/cas/versioned_store.h"

namespace headgate::shared_store {

struct LoopOfStore {
  net::EventLoop& loop;
  store::cas::VersionedStore& values;
};

// Runs the loops on this thread, in turn, until the store has answered some reads on each of them:
// several keys, because a cluster or a ring has them on several servers. Nothing is written. A
// refusal is an answer, too. Returns why the store has not answered, after about `timeout`.
absl::Status AwaitStore(std::span<const LoopOfStore> loops, base::Duration timeout);

}  // namespace headgate::shared_store
