// The listening addresses of a server: opened, or taken over from the process that runs, and
// handed over to the next one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/access/access.h"
#include "headgate/app/settings/console.h"
#include "headgate/app/settings/listen_address.h"
#include "headgate/follow/certificates.h"
#include "headgate/handover/handover.h"
#include "headgate/net/server.h"
#include "headgate/observe/log.h"

namespace headgate::app {

// Logs that the new process serves without the state of the old one, or without a part of it.
void LogNoState(observe::Log& log, const absl::Status& why);

class Listeners {
 public:
  using Sessions = std::function<net::SessionChooser(uint32_t loop)>;

  // Whether clients of an address can read or change state, if their rights allow it.
  enum class Reveals : uint8_t { kNothing, kState };

  struct Admin {
    ListenAddress address;
    uint32_t connections_max = 0;  // reserved for it
    // Nobody has asked for this address, so the server also starts without it.
    bool is_default = false;
  };

  // `handover` is the Unix socket of the processes that follow each other; empty: there is none.
  // Everything must outlive this object.
  Listeners(std::string handover, net::Server& server, const follow::Certificates& certificates,
            const access::Access& access, const Console& console, observe::Log& log)
      : handover_(std::move(handover)),
        server_(server),
        certificates_(certificates),
        access_(access),
        console_(console),
        log_(log) {}

  // The calls of a start, in this order. Each returns false if it fails; the error is then on the
  // console. `Listen` is called for each address, before the server starts.
  bool FindPredecessor();
  bool has_predecessor() const { return predecessor_.has_value(); }
  bool Listen(const ListenAddress& address, Reveals reveals, const Sessions& sessions);
  bool ListenForAdmin(const Admin& admin, const Sessions& sessions);
  // Prints the addresses that are not printed yet, one a line. Programs that read these lines take
  // the first one to mean that the addresses are served, so call it when the server has started, or
  // while a predecessor serves them.
  void Announce();
  // Makes the predecessor leave, if there is one, and waits for a successor on `loop`. When one
  // comes, it gets the result of `state`. `take_over` gets the state of the predecessor.
  bool AwaitSuccessor(net::EventLoop& loop, std::function<handover::SidecarState()> state,
                      const std::function<void(const handover::SidecarState&)>& take_over);

  // Whether a process has taken over the addresses. On the thread of the loop.
  bool has_successor() const { return has_successor_; }
  void EndHandover() { point_.reset(); }

 private:
  // Returns false.
  bool Refuse(const absl::Status& problem) const;
  absl::Status Open(const ListenAddress& address, std::string_view announced, Reveals reveals,
                    const Sessions& sessions, net::ListenOptions options);
  absl::StatusOr<net::Endpoint> TakeOrListen(std::string_view name, const net::Endpoint& endpoint,
                                             const Sessions& sessions,
                                             const net::ListenOptions& options);

  const std::string handover_;
  net::Server& server_;
  const follow::Certificates& certificates_;
  const access::Access& access_;
  const Console& console_;
  observe::Log& log_;
  std::string announced_;
  std::optional<handover::Predecessor> predecessor_;  // until this process is ready
  std::vector<handover::HandoverPoint::Address> addresses_;
  bool has_successor_ = false;
  std::unique_ptr<handover::HandoverPoint> point_;
};

}  // namespace headgate::app
