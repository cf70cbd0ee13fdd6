// Decides the buckets of one command that brings its own limits, apart from the batch of
// throttle.h: for commands whose reply is not that of CL.THROTTLE.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "headgate/base/strided.h"
#include "headgate/front/resp/turn.h"
#include "headgate/limiter/own_limits.h"
#include "headgate/limiter/pending.h"

namespace headgate::front::resp {

// Writes the reply of the command, or the reason why there is none.
using ReplySettled =
    std::function<Answered(base::Strided<const limiter::Settled> settled, std::string& output)>;

class LateDecisions final : public LateReply {
 public:
  explicit LateDecisions(ReplySettled reply)
      : LateReply(CommandKind::kAlone), reply_(std::move(reply)) {}

  limiter::Pending& pending() { return pending_; }
  Answered Write(std::string& output, base::Instant /*now*/) override {
    return pending_.waiting() ? Answered::kLater : reply_(pending_.settled(), output);
  }

 private:
  const ReplySettled reply_;
  limiter::Pending pending_{[this] { Wake(); }};
};

// `key` gives the client's key of a request of the batch. `reply` is called now or later.
inline Answered DecideOnTurn(const limiter::OwnLimits& own, std::span<limiter::BatchEntry> batch,
                             absl::FunctionRef<std::string_view(size_t index)> key,
                             const ReplySettled& reply, const Turn& turn) {
  auto late = own.may_wait() ? std::make_unique<LateDecisions>(reply) : nullptr;
  limiter::Pending* const pending = late == nullptr ? nullptr : &late->pending();
  if (!own.Decide(batch, key, pending, turn.now)) {
    turn.queue.Add(std::move(late));
    return Answered::kLater;
  }
  return reply(base::Strided<const limiter::Settled>::Of(batch, &limiter::BatchEntry::settled),
               turn.output);
}

}  // namespace headgate::front::resp
