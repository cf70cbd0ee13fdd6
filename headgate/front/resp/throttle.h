// CL.THROTTLE, the command of redis-cell: a token bucket under a name that the client chooses, with
// a limit that comes with each request.
//
//   CL.THROTTLE key max_burst count period_s [quantity]
//     →  [limited, limit, remaining, retry_after_s, reset_after_s]
//
// GCRA, a command planned for Redis, decides by the same buckets and has the same reply:
//
//   GCRA key max_burst tokens_per_period period [TOKENS quantity]
//
// Commands that arrive together are collected, decided by one call of the store, and answered in
// order. Nothing on this path allocates once a limit is known. Specification and differences from
// redis-cell: docs/reference/redis-protocol.md.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/base/strided.h"
#include "headgate/base/time.h"
#include "headgate/front/resp/counters.h"
#include "headgate/front/resp/limit_cache.h"
#include "headgate/front/resp/throttle_arguments.h"
#include "headgate/front/resp/turn.h"
#include "headgate/limiter/own_limits.h"
#include "headgate/store/limit_table.h"
#include "headgate/wire/resp_parser.h"

namespace headgate::front::resp {

// One per loop. It is empty between two calls of OnBytes.
//
// Each function returns false if the replies of the collected commands come later. In this case
// they are in the queue of the turn, and the batch is empty.
class ThrottleBatch {
 public:
  ThrottleBatch(limiter::Checker& checker, Counters& counters);
  ~ThrottleBatch();

  // The number of collected commands without a reply.
  size_t size() const { return size_; }
  bool full() const { return size_ == kCommandsMax; }

  // Adds one command, given by a wire::RespParser or CommandWords; must not be full. Replies that
  // must precede this command are written first. If they have to wait, the command is not added.
  template <typename Words>
  bool Add(ThrottleForm form, const Words& command, const Turn& turn);

  // Decides the collected commands and appends the replies.
  bool Flush(const Turn& turn);

 private:
  class Late;

  // Twice the usual depth of a pipeline; the replies fit on the stack.
  static constexpr size_t kCommandsMax = 64;

  bool Refuse(ThrottleForm form, const absl::Status& status, const Turn& turn);
  // The key of a collected command, and its quantity.
  struct Asked {
    std::string key;
    algorithm::Cost cost = 0;
  };
  // `asked` is empty unless an observer wants to know keys.
  void Reply(base::Strided<const limiter::Settled> settled, std::span<const Asked> asked,
             std::string& output);

  const limiter::OwnLimits own_;
  Counters& counters_;
  LimitCache limits_;
  size_t size_ = 0;
  // Kept, because creating them for each batch costs more than a decision.
  std::array<limiter::BatchEntry, kCommandsMax> batch_;
  // Used only if decisions may have to wait, or keys are heard.
  std::array<Asked, kCommandsMax> asked_;
  bool keys_are_heard_ = false;  // since the first of the collected commands
  std::unique_ptr<Late> next_;   // for the next batch
};

}  // namespace headgate::front::resp
