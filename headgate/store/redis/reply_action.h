// What follows from an error reply, or from something that happened to a connection: the one table
// of it.
//
// Whether a call was done decides everything: what was certainly not done may be tried again, once;
// what may have been done never is.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"

namespace headgate::store::redis {

// What to do with the call.
enum class CallAction : uint8_t {
  kFail,        // the caller gets `status`
  kPassOn,      // the caller gets the error as the script's answer
  kFollow,      // MOVED: ask the server that the error names, and remember it for the slot
  kAsk,         // ASK: ask the server that the error names, behind ASKING, and remember nothing
  kRetrySoon,   // ask the same server again, once, after 5 to 20 ms
  kRetryFresh,  // ask again, once, on a fresh connection to whoever is the primary, as the topology
                // says once it was asked
  kSendScript,  // ask again, once, with the text of the script
};

// What happens to a connection, as far as its calls are concerned.
enum class ConnectionEvent : uint8_t {
  kReplyTimeout,  // sent, and not answered in time
  kQueueTimeout,  // never sent, and nothing was answered meanwhile
  kOutOfTime,     // never sent: others went first, and were answered
  kClosed,  // sent, and the connection ended: end of file, reset, half a reply, a reply that cannot
            // be read
  kConnectRefused,  // never sent: nobody there
  kQueueFull,       // never sent: too many wait
  kBreakerOpen,     // never sent
  kStoreRefused,  // never sent: a replica, or an eviction policy that a strict store does not take
  kLearning,      // never sent: what the server has may lack leases that are being spent
};

struct ReplyAction {
  std::string_view code{};  // the first word of the error; what the event is called
  CallAction action = CallAction::kFail;
  // Of a call that fails. Unavailable: not done. DeadlineExceeded, Aborted: it may have been done.
  absl::StatusCode status = absl::StatusCode::kUnavailable;
  bool counts_as_failure = false;   // for the breaker
  bool refreshes_topology = false;  // with jitter
  bool drops_connection = false;
  bool pauses_server = false;  // for a second
  bool alarms = false;         // somebody should look

  bool operator==(const ReplyAction&) const = default;
};

// `error` is the text of an error reply. A code that the table does not have is the script's own:
// kPassOn.
const ReplyAction& ActionFor(std::string_view error);
const ReplyAction& ActionFor(ConnectionEvent event);

// All rows, for metrics and tests: error codes, then events.
std::span<const ReplyAction> ReplyActions();

// The first word.
std::string_view ErrorCode(std::string_view error);

}  // namespace headgate::store::redis
