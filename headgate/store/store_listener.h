// The events that a shared store reports for the log. Each is worth one line there.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "headgate/base/time.h"

namespace headgate::store {

// Why the history of a shard's data broke. The shard must then learn which leases are outstanding
// (docs/internals/leases.md).
enum class HistoryChange : uint8_t { kNone, kRestarted, kPromoted, kReplaced };
inline constexpr int kHistoryChangeCount = 4;
std::string_view Name(HistoryChange change);

// Events of the connections of one event loop, called on its thread. A store reports only the
// events that it has. No argument contains a password, a key or another argument of a call.
struct StoreListener {
  // A connection to a server was established, or failed for the reason in `state`. Repeated
  // failures for the same reason are reported once.
  std::function<void(const std::string& server, const absl::Status& state)> on_connection{};
  // The server's eviction policy may drop live limits. `policy` is empty if the server does not
  // report its policy. Reported once per policy. A strict store refuses such a server instead,
  // through on_connection.
  std::function<void(const std::string& server, const std::string& policy)> on_eviction_policy{};
  // A server gave no usable answer to a topology request, for the reason in `state`; OK when it
  // answers again. Repeated identical answers are reported once.
  std::function<void(const std::string& server, const absl::Status& state)> on_topology{};
  // The store was used for the first time, or refuses this process for the reason in `state`: its
  // login, a missing right, or a setting that this process does not accept.
  std::function<void(const absl::Status& state)> on_usability{};
  // The breaker opened, or closed again.
  std::function<void(const std::string& server, bool open)> on_breaker{};
  // A shard started to learn, for `term`, because the history of its server broke.
  std::function<void(const std::string& server, HistoryChange change, base::Duration term)>
      on_learning{};
  // The shard has finished learning and is used again.
  std::function<void(const std::string& server)> on_learned{};
  // The local clock missed a pause of this machine: a server's clock advanced further by `missed`.
  // Leases held here may have expired at the store and must no longer be spent.
  std::function<void(const std::string& server, base::Duration missed)> on_pause_missed{};
  // An error reply that needs an operator: out of memory, a missing right and the like.
  std::function<void(const std::string& server, const std::string& error)> on_alarm{};
  // A decision failed at the store: a missing permission or a bug in Headgate.
  std::function<void(const std::string& error)> on_decision_error{};
  // The store refused to count the instances, with this error; an empty error means that it counts
  // them again. Each change is reported once.
  std::function<void(const std::string& error)> on_instances_error{};
};

}  // namespace headgate::store
