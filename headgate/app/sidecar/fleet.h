// The pool that a sidecar shares with the others of its fleet (`--scope fleet`), and its rounds
// with the store on the first event loop.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "headgate/base/clock.h"
#include "headgate/base/hash.h"
#include "headgate/net/event_loop.h"
#include "headgate/observe/log.h"
#include "headgate/observe/metrics.h"
#include "headgate/proxy/fleet_admission.h"
#include "headgate/share/fleet/fleet_count.h"
#include "headgate/share/fleet/fleet_rounds.h"
#include "headgate/share/fleet_pool.h"
#include "headgate/shared_store/shared_stores.h"

namespace headgate::app {

// The key by which all instances replace long ids of clients in this pool. Whoever knows the name
// of the pool can find two ids with one hash.
base::HashSecret SecretOfPool(std::string_view pool);

class SidecarFleet {
 public:
  // `share` must be valid, with a number as its capacity. All must outlive this object.
  SidecarFleet(std::string pool, const share::ShareOptions& share,
               const base::DisciplinedClock& clock, observe::Log& log);

  proxy::Admission& admission() { return admission_; }
  share::FleetPool& pool() { return *pool_; }

  // Before the loops run. `stores` and the loop, its first one, must not end before LeaveLoop.
  // `instances`: as given by --store-instances; 0: they are counted.
  void Begin(shared_store::SharedStores& stores, uint32_t instances, net::EventLoop& loop);
  // When the loop does not run any more.
  void LeaveLoop() { on_loop_.reset(); }

  // The number of replicas, for the process after this one and from the one before; 0: it is not
  // known. After Begin, from any thread.
  uint32_t HandOverCount() const;
  void TakeOverCount(uint32_t instances);

  // From any thread, while the loop is there.
  void Collect(observe::Sink& sink) const;

 private:
  struct OnLoop {
    OnLoop(SidecarFleet& fleet, shared_store::SharedStores& stores, net::EventLoop& event_loop);

    net::EventLoop& loop;
    share::fleet::FleetRounds rounds;
    net::Timer timer;
  };

  share::fleet::FleetListener Listener();
  // On the loop.
  uint32_t Count(const share::fleet::FleetCounters& counters);
  void Need();

  const std::string name_;
  const share::ShareOptions& share_;
  const base::DisciplinedClock& clock_;
  observe::Log& log_;
  const std::unique_ptr<share::FleetPool> pool_;
  proxy::FleetAdmission admission_;
  std::optional<share::fleet::FleetCount> count_;
  std::atomic<bool> is_needed_{false};  // the loop has been told that a request waits
  std::optional<OnLoop> on_loop_;
};

}  // namespace headgate::app
