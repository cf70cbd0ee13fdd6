#include "headgate/store/redis/reply_action.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace headgate::store::redis {
namespace {

using enum CallAction;
using enum absl::StatusCode;

constexpr std::array kRows = {
    ReplyAction{.code = "MOVED", .action = kFollow, .refreshes_topology = true},
    ReplyAction{.code = "ASK", .action = kAsk},
    ReplyAction{.code = "TRYAGAIN", .action = kRetrySoon},
    ReplyAction{.code = "CLUSTERDOWN", .counts_as_failure = true, .refreshes_topology = true},
    ReplyAction{.code = "MASTERDOWN", .counts_as_failure = true, .refreshes_topology = true},
    ReplyAction{.code = "LOADING", .counts_as_failure = true},
    ReplyAction{.code = "NOREPLICAS", .counts_as_failure = true},
    ReplyAction{.code = "MISCONF", .counts_as_failure = true, .alarms = true},
    ReplyAction{.code = "READONLY",
                .action = kRetryFresh,
                .refreshes_topology = true,
                .drops_connection = true},
    ReplyAction{.code = "NOSCRIPT", .action = kSendScript},
    ReplyAction{.code = "BUSY", .counts_as_failure = true, .alarms = true},
    ReplyAction{.code = "OOM", .counts_as_failure = true, .alarms = true},
    // Our scripts check the type first. If one did not, the key holds something else.
    ReplyAction{.code = "WRONGTYPE", .status = kInternal, .alarms = true},
    ReplyAction{
        .code = "NOAUTH", .status = kPermissionDenied, .pauses_server = true, .alarms = true},
    ReplyAction{
        .code = "WRONGPASS", .status = kPermissionDenied, .pauses_server = true, .alarms = true},
    ReplyAction{
        .code = "NOPERM", .status = kPermissionDenied, .pauses_server = true, .alarms = true},
    // Every script touches exactly one key, so this is a bug of ours. No other row has this status:
    // the caller must not take it for an unreachable store.
    ReplyAction{.code = "CROSSSLOT", .status = kUnimplemented, .alarms = true},
    ReplyAction{.code = "", .action = kPassOn},

    ReplyAction{.code = "reply_timeout",
                .status = kDeadlineExceeded,
                .counts_as_failure = true,
                .refreshes_topology = true},
    ReplyAction{.code = "queue_timeout", .counts_as_failure = true},
    ReplyAction{.code = "out_of_time", .status = kResourceExhausted},
    ReplyAction{.code = "closed",
                .status = kAborted,
                .counts_as_failure = true,
                .refreshes_topology = true},
    ReplyAction{.code = "connect_refused", .counts_as_failure = true, .refreshes_topology = true},
    ReplyAction{.code = "queue_full", .status = kResourceExhausted},
    ReplyAction{.code = "breaker_open", .refreshes_topology = true},
    ReplyAction{.code = "store_refused", .refreshes_topology = true},
    ReplyAction{.code = "learning"},
};

constexpr size_t kPassOnRow = 17;
static_assert(kRows[kPassOnRow].action == kPassOn);
static_assert(kRows.size() == kPassOnRow + 2 + static_cast<size_t>(ConnectionEvent::kLearning));

}  // namespace

std::string_view ErrorCode(std::string_view error) { return error.substr(0, error.find(' ')); }

const ReplyAction& ActionFor(std::string_view error) {
  const std::string_view code = ErrorCode(error);
  const auto row =
      std::find_if(kRows.begin(), kRows.begin() + kPassOnRow,
                   [&](const ReplyAction& candidate) { return candidate.code == code; });
  return *row;
}

const ReplyAction& ActionFor(ConnectionEvent event) {
  return kRows[kPassOnRow + 1 + static_cast<size_t>(event)];
}

std::span<const ReplyAction> ReplyActions() { return kRows; }

}  // namespace headgate::store::redis
