// The table, row by row, as it follows from the meaning of each error.
#include "headgate/store/redis/reply_action.h"

#include <gtest/gtest.h>

#include <set>

namespace headgate::store::redis {
namespace reply_action_test {

using enum CallAction;
using enum absl::StatusCode;

struct Expected {
  std::string_view text;
  ReplyAction action;
};

class ErrorReply : public ::testing::TestWithParam<Expected> {};

TEST_P(ErrorReply, LeadsTo) {
  const ReplyAction& action = ActionFor(GetParam().text);
  ReplyAction expected = GetParam().action;
  expected.code = expected.action == kPassOn ? "" : ErrorCode(GetParam().text);
  EXPECT_EQ(action, expected) << GetParam().text;
}

constexpr ReplyAction kUnavailableFailure = {.counts_as_failure = true};
constexpr ReplyAction kDenied = {
    .status = kPermissionDenied, .pauses_server = true, .alarms = true};

INSTANTIATE_TEST_SUITE_P(
    All, ErrorReply,
    ::testing::Values(
        Expected{"MOVED 3999 127.0.0.1:6381", {.action = kFollow, .refreshes_topology = true}},
        Expected{"ASK 3999 127.0.0.1:6381", {.action = kAsk}},
        Expected{"TRYAGAIN Multiple keys request during rehashing of slot", {.action = kRetrySoon}},
        Expected{"CLUSTERDOWN Hash slot not served",
                 {.counts_as_failure = true, .refreshes_topology = true}},
        Expected{"MASTERDOWN Link with MASTER is down",
                 {.counts_as_failure = true, .refreshes_topology = true}},
        Expected{"LOADING Redis is loading the dataset in memory", kUnavailableFailure},
        Expected{"NOREPLICAS Not enough good replicas to write.", kUnavailableFailure},
        Expected{"MISCONF Redis is configured to save RDB snapshots",
                 {.counts_as_failure = true, .alarms = true}},
        Expected{"READONLY You can't write against a read only replica.",
                 {.action = kRetryFresh, .refreshes_topology = true, .drops_connection = true}},
        Expected{"NOSCRIPT No matching script. Please use EVAL.", {.action = kSendScript}},
        Expected{"BUSY Redis is busy running a script.",
                 {.counts_as_failure = true, .alarms = true}},
        Expected{"OOM command not allowed when used memory > 'maxmemory'.",
                 {.counts_as_failure = true, .alarms = true}},
        Expected{"WRONGTYPE Operation against a key holding the wrong kind",
                 {.status = kInternal, .alarms = true}},
        Expected{"NOAUTH Authentication required.", kDenied},
        Expected{"WRONGPASS invalid username-password", kDenied},
        Expected{"NOPERM this user has no permissions", kDenied},
        Expected{"CROSSSLOT Keys in request don't hash to the same slot",
                 {.status = kUnimplemented, .alarms = true}},
        Expected{"ERR user_script:1: something", {.action = kPassOn}},
        Expected{"", {.action = kPassOn}}, Expected{"MOVEDX", {.action = kPassOn}}));

class Event : public ::testing::TestWithParam<std::pair<ConnectionEvent, ReplyAction>> {};

TEST_P(Event, LeadsTo) {
  ReplyAction action = ActionFor(GetParam().first);
  EXPECT_FALSE(action.code.empty());
  action.code = "";
  EXPECT_EQ(action, GetParam().second) << static_cast<int>(GetParam().first);
}

// A command that was sent may have been executed; one that was not sent was not.
INSTANTIATE_TEST_SUITE_P(
    All, Event,
    ::testing::Values(
        std::pair{ConnectionEvent::kReplyTimeout, ReplyAction{.status = kDeadlineExceeded,
                                                              .counts_as_failure = true,
                                                              .refreshes_topology = true}},
        std::pair{ConnectionEvent::kQueueTimeout, ReplyAction{.counts_as_failure = true}},
        std::pair{ConnectionEvent::kOutOfTime,
                  ReplyAction{.status = absl::StatusCode::kResourceExhausted}},
        std::pair{
            ConnectionEvent::kClosed,
            ReplyAction{.status = kAborted, .counts_as_failure = true, .refreshes_topology = true}},
        std::pair{ConnectionEvent::kConnectRefused,
                  ReplyAction{.counts_as_failure = true, .refreshes_topology = true}},
        std::pair{ConnectionEvent::kQueueFull, ReplyAction{.status = kResourceExhausted}},
        std::pair{ConnectionEvent::kBreakerOpen, ReplyAction{.refreshes_topology = true}},
        std::pair{ConnectionEvent::kStoreRefused, ReplyAction{.refreshes_topology = true}},
        std::pair{ConnectionEvent::kLearning, ReplyAction{}}));

TEST(ReplyActions, EachCodeHasOneRow) {
  std::set<std::string_view> codes;
  for (const ReplyAction& row : ReplyActions())
    EXPECT_TRUE(codes.insert(row.code).second) << row.code;
  EXPECT_EQ(codes.size(), 27u) << "a new row needs its line in this test";
}

}  // namespace reply_action_test
}  // namespace headgate::store::redis
