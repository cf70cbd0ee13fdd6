// Decides the buckets of one command that brings its own limits, apart from the batch of
// throttle.h: for commands whose reply is not that of CL.THROTTLE.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "headgate/base/status.h"
#include "headgate/base/strided.h"
#include "headgate/front/resp/throttle.h"
#include "headgate/limiter/checker.h"

namespace headgate::front::resp {

struct OwnLimitsCommand {
  // Fills the batch. Called before anything is decided.
  absl::FunctionRef<absl::Status()> read;
  // The client's key of this request of the batch.
  absl::FunctionRef<std::string_view(size_t index)> key;
  absl::FunctionRef<absl::Status(base::Strided<const limiter::Settled>)> reply;
};

// True: `reply` was called. False: nothing was written; call again with the same command when the
// turn's Pending is ready. An error of `read` or `reply` is returned.
inline absl::StatusOr<bool> DecideOnTurn(const limiter::Checker& checker,
                                         std::vector<limiter::BatchEntry>& batch,
                                         const ThrottleTurn& turn,
                                         const OwnLimitsCommand& command) {
  if (turn.pending.waiting()) return false;
  if (!turn.pending.settled().empty()) {
    const absl::Status status = command.reply(turn.pending.settled());
    turn.pending.Forget();
    if (!status.ok()) return status;
    return true;
  }
  HEADGATE_RETURN_IF_ERROR(command.read());
  const auto name = [&](size_t index, std::string& out) {
    limiter::AppendThrottleBucket(checker.naming(), command.key(index), out);
  };
  if (!checker.decider().Decide(batch, name, &turn.pending, turn.now)) return false;
  HEADGATE_RETURN_IF_ERROR(command.reply(
      base::Strided<const limiter::Settled>::Of(std::span(batch), &limiter::BatchEntry::settled)));
  return true;
}

}  // namespace headgate::front::resp
