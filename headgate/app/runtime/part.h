// A part of a server process that answers clients: the fronts, or the proxy. The process has what
// the parts share (process.h), and calls them in the order of this interface.
#pragma once

#include <cstdint>
#include <vector>

#include "headgate/base/time.h"
#include "headgate/follow/mappings.h"
#include "headgate/follow/tls_files.h"
#include "headgate/gate/verdict_metrics.h"
#include "headgate/handover/messages.h"
#include "headgate/http/http2/flood_guard.h"
#include "headgate/http/routing/router.h"
#include "headgate/observe/metrics.h"

namespace headgate::app {

// The figures that several parts count, which are reported as sums.
struct PartSums {
  bool judges = false;  // a part judges requests by mappings; else the next two have no meaning
  gate::VerdictSums verdicts{};
  uint64_t repeats_forgotten = 0;
  std::vector<const follow::Mappings*> mappings{};
  std::vector<const follow::TlsFiles*> certificates{};
  std::vector<const http::http2::Counters*> http2{};
};

class Part {
 public:
  virtual ~Part() = default;

  // Reads its own files. Returns false if there are problems; they are then on the console.
  virtual bool Load() { return true; }
  // The store is open, and the loops do not run yet.
  virtual void Begin() = 0;
  // Adds its routes of the admin address on this loop.
  virtual void AddRoutes(http::routing::Router& /*router*/, uint32_t /*loop*/) {}
  // Returns false if an address cannot be used; the error is then on the console.
  virtual bool Listen() = 0;

  // On the main thread, while it serves. Tick comes every second.
  virtual void Reload() = 0;
  virtual void Tick(base::Instant /*now*/) {}
  // Passthrough of the process has begun or ended. On any thread.
  virtual void OnPassthrough() {}
  // A restart with a handover: adds its state for the next process, and takes that of the process
  // before.
  virtual void HandOver(handover::SidecarState& /*state*/) {}
  virtual void TakeOver(const handover::SidecarState& /*state*/) {}

  // The process drains, and all loops know: requests that still wait at `end` get their refusals.
  virtual void EndWaiting(base::Instant /*end*/) {}
  // The loops do not run any more. May be called twice.
  virtual void LeaveLoops() {}

  // Reports its own figures, and adds to the sums. One thread at a time.
  virtual void Collect(observe::Sink& sink, PartSums& sums) = 0;
  // The memory of an idle connection that is not counted among the buffers.
  virtual uint64_t idle_connection_bytes() const { return 0; }
};

}  // namespace headgate::app
