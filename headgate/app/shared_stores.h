// The store that instances share, as each event loop asks it: a client, the store over it, and the
// fleet that decides by it; and the leases, which all loops share. None of it where every limit is
// this process's alone.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headgate/app/degraded_watch.h"
#include "headgate/app/engine.h"
#include "headgate/app/settings.h"
#include "headgate/app/store_settings.h"
#include "headgate/base/status.h"
#include "headgate/limiter/bucket_name.h"
#include "headgate/limiter/shared_decider.h"
#include "headgate/net/server.h"
#include "headgate/observe/metrics.h"
#include "headgate/store/redis/client.h"
#include "headgate/store/redis/redis_store.h"

namespace headgate::app {

class SharedStores {
 public:
  // InvalidArgument where `store` cannot be. One for each of the server's `loops`, which do not
  // run: neither yet, nor any more when this goes. All but the settings must outlive the result.
  static absl::StatusOr<std::unique_ptr<SharedStores>> Make(const StoreSettings& store,
                                                            const Settings& settings,
                                                            Engine& engine, net::Server& server,
                                                            uint32_t loops, observe::Log& log);
  ~SharedStores();
  SharedStores(const SharedStores&) = delete;

  limiter::SharedDecider& fleet(uint32_t loop);
  const limiter::BucketNaming& naming() const { return naming_; }

  // While the loops still run: returns what is left of leases, tells the other instances that this
  // one is gone, stops the loops, and logs what became of the leases. Takes as long as the store
  // takes to confirm it: the leases at most one ttl, and one timeout if the store does not answer
  // (limiter/return_pace.h); the rest at most `store_timeout`.
  void Leave(net::Server& server);

  // Every second or so, by one thread: says in the log when decisions begin to be made without the
  // store, and when that is over.
  void Tick(base::Instant now);

  // From any thread.
  void Collect(observe::Sink& sink) const;

 private:
  struct Loop;
  explicit SharedStores(observe::Log& log);

  uint64_t DecisionsOf(limiter::Mode mode) const;
  void LogReturns(const limiter::LeaseTotals& before, uint64_t keys);

  observe::Log& log_;
  limiter::BucketNaming naming_;
  std::unique_ptr<limiter::LeaseBooks> leases_;
  limiter::SharedRests rests_;
  std::vector<std::unique_ptr<Loop>> loops_;
  std::unique_ptr<store::redis::Heartbeat> heartbeat_;    // lives on the first loop
  std::array<DegradedWatch, limiter::kModeCount> alone_;  // of the modes without the store
};

}  // namespace headgate::app
