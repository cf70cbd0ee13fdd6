// The upstreams of a running sidecar: the list in force, the addresses behind its names, and the
// files of TLS towards them. A change of any of them is published to the loops.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/base/counter.h"
#include "headgate/follow/tls_files.h"
#include "headgate/handover/messages.h"
#include "headgate/net/event_loop.h"
#include "headgate/net/name_lookup.h"
#include "headgate/net/tls_context.h"
#include "headgate/observe/log.h"
#include "headgate/observe/metrics.h"
#include "headgate/proxy/upstream/list.h"
#include "headgate/proxy/upstream/names.h"

namespace headgate::proxy::upstream {

struct LiveOptions {
  List list{};                // at first
  base::Duration resolve{0};  // between two lookups of a name
  std::string tls_name{};     // that certificates must have; empty: the host in the list
  std::shared_ptr<net::TlsContext> tls{};  // null: plain
  net::TlsOptions tls_files{};             // that `tls` was loaded from
};

class Live {
 public:
  // Called with the addresses that requests go to, and the TLS of new connections (null: plain). By
  // one thread at a time.
  using Publish = std::function<void(const std::vector<Address>& addresses,
                                     const std::shared_ptr<net::TlsContext>& tls)>;
  // Looks a name up, and calls `done` on the loop, never from within this call. `done` may destroy
  // the result of LookUp; after that destruction, `done` is not called.
  using LookUp = std::function<std::shared_ptr<void>(const net::StreamTarget& name,
                                                     net::NameLookup::Done done)>;
  static LookUp SystemsLookUp(net::EventLoop& loop);

  // Everything must outlive this object, which lives on `loop`.
  Live(const LiveOptions& options, LookUp look_up, net::EventLoop& loop,
       const base::DisciplinedClock& clock, observe::Log& log, Publish publish);

  // Begins to look names up, and to follow the files of TLS.
  void Begin();
  // Reads the files of TLS again.
  void Reload() { files_.Reload(); }

  // From any thread.
  List list() const;
  void Set(List to);
  std::vector<Address> addresses() const;
  std::vector<Names::State> names() const;
  // The known addresses of names: for the process that takes over, and from the process before this
  // one.
  std::vector<handover::NamedAddress> HandOver() const;
  void TakeOver(const std::vector<handover::NamedAddress>& known);
  const follow::TlsFiles& files() const { return files_; }
  void Collect(observe::Sink& sink) const;

 private:
  // Looks up the names that are due, and gives up lookups of names that are not in the list.
  void LookUpDue();
  void OnAnswer(net::StreamTarget name, absl::StatusOr<net::SocketAddresses> answer);
  void LogAnswer(const net::StreamTarget& name, const Names::Heard& heard,
                 const absl::StatusOr<net::SocketAddresses>& answer);
  absl::Status ReloadTls();
  // With mutex_.
  void PublishNow();

  const LiveOptions& options_;
  const LookUp look_up_;
  net::EventLoop& loop_;
  const base::DisciplinedClock& clock_;
  observe::Log& log_;
  const Publish publish_;
  base::Counter answered_{};
  base::Counter failed_{};
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  Names names_;
  std::shared_ptr<net::TlsContext> tls_;
  bool leaves_out_ = false;  // there are too many addresses
  // Only on the loop.
  follow::TlsFiles files_;
  std::vector<std::pair<net::StreamTarget, std::shared_ptr<void>>> lookups_;  // in progress
  net::Timer timer_;
};

}  // namespace headgate::proxy::upstream
