// One process of a simulated fleet: the state that its event loops share; each loop is a Node. It
// holds the leases, with a Ledger for each key. While the store is unreachable, the instance is
// held to its share of each limit: a bound of its own, checked at every local decision.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/limiter/lease/lease_books.h"
#include "headgate/limiter/shared/outage.h"
#include "headgate/store/memory.h"
#include "tests/simulation/bound.h"
#include "tests/simulation/coverage.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/plan.h"

namespace headgate::simulation {

// An instance's local store as used by one of its loops; it reports each decision to the loop.
class WatchedStore final : public store::Store {
 public:
  using Watch = std::function<void(const store::TakeRequest& request,
                                   const algorithm::Decision& decision, base::Instant now)>;
  WatchedStore(store::MemoryStore& memory, Watch watch)
      : memory_(memory), watch_(std::move(watch)) {}

  void Take(base::Strided<const store::TakeRequest> requests,
            base::Strided<algorithm::Decision> decisions, base::Instant now) override {
    memory_.Take(requests, decisions, now);
    for (size_t i = 0; i < requests.size(); ++i) watch_(requests[i], decisions[i], now);
  }
  const base::HashSecret& hash_secret() const override { return memory_.hash_secret(); }
  store::LimitTable& limits() override { return memory_.limits(); }

 private:
  store::MemoryStore& memory_;
  const Watch watch_;
};

class Instance {
 public:
  // `wrong` is called with each error that the ledgers find.
  Instance(const Plan& plan, uint64_t id, const std::vector<store::LimitHandle>& limits,
           Coverage& coverage, const Ledger::Wrong& wrong);

  // For the store, the instance is one node with this id.
  uint64_t id() const { return id_; }
  store::MemoryStore& memory() { return memory_; }
  store::LimitTable& limits() { return memory_.limits(); }
  limiter::lease::LeaseBooks& leases() { return leases_; }
  limiter::shared::SharedRests& rests() { return rests_; }
  Ledger& ledger(size_t key) { return keys_[key].ledger; }
  const Ledger& ledger(size_t key) const { return keys_[key].ledger; }
  // By key, followed by the gate's; from this instance's table.
  const store::LimitHandle& limit(size_t key) const { return keys_[key].limit; }
  size_t key_count() const { return keys_.size(); }

  // Registers a loop, which must be woken when shared state has changed.
  void AddLoop(std::function<void()> wake) { wakes_.push_back(std::move(wake)); }
  void WakeLoops() const {
    for (const auto& wake : wakes_) wake();
  }

  void OnLimit(size_t key, const algorithm::Limit& limit);
  // A decision or a peek used this time; a bucket's own time does not go back.
  void SeeAt(size_t key, base::Instant at) {
    keys_[key].share_at = std::max(keys_[key].share_at, at);
  }
  // Counts an admission at the last time that was seen. False: it exceeds the share.
  bool AdmitLocally(size_t key, uint64_t cost, base::Duration reset_after);
  void UndoLocally(size_t key, uint64_t cost, base::Instant taken_at);

 private:
  struct Key {
    store::LimitHandle limit;
    Ledger ledger;
    Bound share;
    base::Instant share_at;  // the latest time of a local decision
  };

  const Plan& plan_;
  const uint64_t id_;
  store::MemoryStore memory_;
  limiter::lease::LeaseBooks leases_;
  limiter::shared::SharedRests rests_;
  std::vector<std::function<void()>> wakes_;
  std::vector<Key> keys_;
};

}  // namespace headgate::simulation
