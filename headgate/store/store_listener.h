// What a shared store reports to whoever keeps the log: each event is worth one line there.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "headgate/base/time.h"

namespace headgate::store {

// Why the history of a shard's data broke, so that the shard has to learn which leases are out
// (docs/internals/leases.md).
enum class HistoryChange : uint8_t { kNone, kRestarted, kPromoted, kReplaced };
inline constexpr int kHistoryChangeCount = 4;
std::string_view Name(HistoryChange change);

// Events of the connections of one event loop, called on its thread. A store leaves out the events
// that it does not have. No argument contains a password, a key or another argument of a call.
struct StoreListener {
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
  // An error reply that needs an operator: out of memory, a missing right and the like.
  std::function<void(const std::string& server, const std::string& error)> on_alarm{};
  // A decision ended with an error at the store: a missing right, or a fault of ours.
  std::function<void(const std::string& error)> on_decision_error{};
  // The store refused to count the instances, with this error; or counts them again, if it is
  // empty. Reported once for each change.
  std::function<void(const std::string& error)> on_instances_error{};
};

}  // namespace headgate::store
