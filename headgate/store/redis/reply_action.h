// A table of the consequences of each error reply, and of each event of a connection.
//
// The decisive question is whether the call was done. A call that was certainly not done may be
// tried once more; a call that may have been done is never repeated.
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
  kRetryFresh,  // ask again, once, on a fresh connection to the primary, after a query of the
                // topology
  kSendScript,  // ask again, once, with the text of the script
};

// Events of a connection that end calls.
enum class ConnectionEvent : uint8_t {
  kReplyTimeout,    // sent, and not answered in time
  kQueueTimeout,    // never sent, and nothing was answered meanwhile
  kOutOfTime,       // never sent: other calls went first, and were answered
  kClosed,          // sent, and the connection ended: closed, reset, or an unreadable reply
  kConnectRefused,  // never sent: no connection
  kQueueFull,       // never sent: too many calls wait
  kBreakerOpen,     // never sent
  kStoreRefused,  // never sent: a replica, or an eviction policy that a strict store does not take
  kLearning,      // never sent: the server's data may lack leases that are being spent
};

constexpr bool IsTimeout(ConnectionEvent event) {
  return event == ConnectionEvent::kReplyTimeout || event == ConnectionEvent::kQueueTimeout;
}

struct ReplyAction {
  std::string_view code{};  // the first word of the error, or the name of the event
  CallAction action = CallAction::kFail;
  // The status of a call that fails. Unavailable: not done. DeadlineExceeded, Aborted: it may have
  // been done.
  absl::StatusCode status = absl::StatusCode::kUnavailable;
  bool counts_as_failure = false;   // for the breaker
  bool refreshes_topology = false;  // with jitter
  bool drops_connection = false;
  bool pauses_server = false;  // for a second
  bool alarms = false;         // an operator should be told

  bool operator==(const ReplyAction&) const = default;
};

// `error` is the text of an error reply. A code that is not in the table comes from the script
// itself: kPassOn.
const ReplyAction& ActionFor(std::string_view error);
const ReplyAction& ActionFor(ConnectionEvent event);

// All rows, for metrics and tests: error codes, then events.
std::span<const ReplyAction> ReplyActions();

// The first word.
std::string_view ErrorCode(std::string_view error);

}  // namespace headgate::store::redis
