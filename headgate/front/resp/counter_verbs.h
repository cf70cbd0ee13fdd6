// INCREX, the counter command of Redis 8.8: increments a number within bounds, and sets its expiry.
//
//   INCREX key [BYFLOAT n | BYINT n] [LBOUND n] [UBOUND n] [SATURATE] [EX s | …] [ENX]
//     →  [value, applied]
//
// A fixed window in one command: `INCREX k UBOUND 100 EX 60 ENX` applies 0 from the 101st request
// of the minute on. Specification and differences from Redis: docs/reference/redis-protocol.md.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/front/resp/turn.h"
#include "headgate/limiter/own_limits.h"
#include "headgate/wire/resp_parser.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::front::resp {

// One per loop. Its memory is reused for all commands.
//
// If an answer comes later, the command is added to the queue of the turn, and the next INCREX of
// the pipeline can be sent while it waits.
class CounterVerbs {
 public:
  explicit CounterVerbs(limiter::Checker& checker);
  ~CounterVerbs();
  CounterVerbs(const CounterVerbs&) = delete;

  // Writes the reply, or an error that says what is wrong with the command or why the counter did
  // not change.
  Answered Answer(const wire::RespParser& command, wire::RespVersion version, const Turn& turn);

  // Removes the counter of this key from a shared store, for DEL. The answer comes in `counts`.
  void Delete(std::string_view key, limiter::PendingCounts& counts, base::Instant now);

 private:
  class Late;

  void Ask(std::string_view key, const algorithm::CounterChange& change,
           limiter::PendingCounts& counts, base::Instant now);
  Answered Reply(const limiter::CountAnswer& answer, algorithm::CounterChange::Kind kind,
                 wire::RespVersion version, std::string& output) const;

  const limiter::OwnLimits own_;
  std::string name_;
  std::unique_ptr<Late> next_;  // for the next command
};

}  // namespace headgate::front::resp
