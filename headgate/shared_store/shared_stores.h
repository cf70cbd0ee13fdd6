// The store that instances share, and the decider of each event loop that asks the store; the loops
// share the leases. A process without a shared store has none of this.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/base/status.h"
#include "headgate/limiter/bucket_name.h"
#include "headgate/limiter/limiter.h"
#include "headgate/limiter/shared/shared_decider.h"
#include "headgate/net/server.h"
#include "headgate/observe/degraded_watch.h"
#include "headgate/observe/metrics.h"
#include "headgate/rule/source.h"
#include "headgate/shared_store/instance.h"
#include "headgate/store/backend.h"
#include "headgate/store/backend_options.h"
#include "headgate/store/memory.h"

namespace headgate::shared_store {

struct SharedStoresOptions {
  store::BackendOptions backend{};
  limiter::BucketNaming naming{};
  // For rules that do not say it themselves.
  rule::OnStoreFailure on_store_failure = rule::OnStoreFailure::kLocal;
  rule::Sharing sharing = rule::Sharing::kLeased;
  Instance instance{};  // this process
  std::string version{};
};

// The parts of the process that decide without the store, too.
struct OwnBuckets {
  store::MemoryStore& store;
  limiter::Limiter& limiter;
  const base::DisciplinedClock& clock;
};

class SharedStores {
 public:
  // InvalidArgument if the options cannot be used. The server's `loops` must not run yet, and must
  // have ended when the result is destroyed. The result refers to `own`, the server and the log.
  static absl::StatusOr<std::unique_ptr<SharedStores>> Make(const SharedStoresOptions& options,
                                                            const OwnBuckets& own,
                                                            net::Server& server, uint32_t loops,
                                                            observe::Log& log);
  ~SharedStores();
  SharedStores(const SharedStores&) = delete;

  limiter::shared::SharedDecider& decider(uint32_t loop);
  const limiter::BucketNaming& naming() const { return naming_; }
  // For state that is not a bucket, on this loop's thread.
  store::cas::VersionedStore& values(uint32_t loop) { return backend_->values(loop); }

  // Before the loops run: runs them on this thread until the store has answered on each, or for
  // this long (store_wait.h). Returns why it has not answered.
  absl::Status AwaitStore(base::Duration timeout);

  // While the loops still run: another process has taken over, and this one does not count as an
  // instance any more. It still decides with the store. Returns at once.
  void LeaveCount();

  // While the loops still run: returns the unspent leases, tells the other instances that this one
  // is gone, stops the loops, and logs how many leases were returned. Takes as long as the store
  // takes to confirm: at most one ttl for the leases, or one timeout if the store does not answer
  // (limiter/shared/return_pace.h), and at most `store_timeout` for the rest.
  void Leave(net::Server& server);

  // Why the store has never been usable (store/backend.h). From any thread.
  absl::Status problem() const { return backend_->problem(); }

  // Logs when decisions without the store begin and end. To be called about every second, by one
  // thread.
  void Tick(base::Instant now);

  // Shows these rules in the store, if the store shows its instances.
  void ShowRules(const rule::RulesInForce& rules) {
    backend_->ShowRules(rules.generation, rules.fingerprint);
  }

  // From any thread.
  uint32_t instances() const { return backend_->instances(); }
  void Collect(observe::Sink& sink) const;

 private:
  struct Loop;
  explicit SharedStores(observe::Log& log);

  uint64_t DecisionsOf(limiter::Mode mode) const;
  void CollectStore(observe::Sink& sink) const;
  void LogReturns(const limiter::lease::LeaseTotals& before, uint64_t keys);

  observe::Log& log_;
  limiter::BucketNaming naming_;
  std::unique_ptr<limiter::lease::LeaseBooks> leases_;
  limiter::shared::SharedRests rests_;
  std::unique_ptr<store::Backend> backend_;
  std::vector<std::unique_ptr<Loop>> loops_;  // their deciders use all of the above
  std::array<observe::DegradedWatch, limiter::kModeCount> alone_;  // of the degraded modes
};

}  // namespace headgate::shared_store
