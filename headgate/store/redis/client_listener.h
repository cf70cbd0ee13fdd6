// What the client tells whoever keeps the log, and the memory that keeps repeated news out of it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "headgate/base/time.h"
#include "headgate/store/redis/shard_histories.h"

namespace headgate::store::redis {

// Each call is worth one line of a log. Nothing passed here contains a password.
struct ClientListener {
  // A server was connected to, or could not be, and the reason. Repeated attempts that fail for the
  // same reason are reported once.
  std::function<void(const std::string& server, const absl::Status& state)> on_connection{};
  // The server's eviction policy may drop live limits; empty: the server does not name its policy.
  // Reported once per policy. A strict store refuses such a server instead, through on_connection.
  std::function<void(const std::string& server, const std::string& policy)> on_eviction_policy{};
  // A server that was asked for the topology gave no usable answer, and the reason; or OK, when it
  // does again. Repeated identical answers are reported once.
  std::function<void(const std::string& server, const absl::Status& state)> on_topology{};
  // The breaker opened, or closed again.
  std::function<void(const std::string& server, bool open)> on_breaker{};
  // A shard began to learn, for `term`, because the history of its server broke.
  std::function<void(const std::string& server, HistoryChange change, base::Duration term)>
      on_learning{};
  // The shard has learned, and is asked again.
  std::function<void(const std::string& server)> on_learned{};
  // A server's clock advanced so much further than ours that ours must have missed a pause: leases
  // held here may have expired at the store, and must not be spent any more.
  std::function<void(const std::string& server, base::Duration missed)> on_pause_missed{};
  // An error reply that needs an operator: OOM, BUSY, NOPERM and the like.
  std::function<void(const std::string& server, const std::string& error)> on_alarm{};
};

// Passes events to the listener, and remembers per server which state it reported last, so that
// only changes are reported. `index` is the server's index in the topology.
class ListenerReports {
 public:
  explicit ListenerReports(ClientListener listener) : listener_(std::move(listener)) {}

  void Connection(uint32_t index, const std::string& server, const absl::Status& state);
  // `policy` is nullopt if the server's policy is no reason for concern.
  void EvictionPolicy(uint32_t index, const std::string& server,
                      const std::optional<std::string>& policy);
  // `problem` is empty if the answer was usable.
  void Topology(uint32_t index, const std::string& server, const std::string& problem);
  void Breaker(const std::string& server, bool open) const;
  void Learning(const std::string& server, HistoryChange change, base::Duration term) const;
  void Learned(const std::string& server) const;
  void PauseMissed(const std::string& server, base::Duration missed) const;
  void Alarm(const std::string& server, std::string_view error) const;

  // The server is gone; another one may get its index.
  void Forget(uint32_t index);

 private:
  struct Last {
    absl::Status connection = absl::UnknownError("");  // nothing reported yet
    std::optional<std::string> eviction_policy{};
    std::string topology_problem{};
  };
  Last& LastOf(uint32_t index);

  const ClientListener listener_;
  std::vector<Last> last_;
};

}  // namespace headgate::store::redis
