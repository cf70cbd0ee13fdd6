// The verbs that use rules: HG.CHECK, HG.PEEK, HG.REFUND, HG.RESET, and for permits HG.ACQUIRE and
// HG.RELEASE.
//
// The replies are maps with the fields of /v1/check, /v1/acquire and /v1/release. See
// docs/reference/redis-protocol.md.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/front/resp/rule_arguments.h"
#include "headgate/limiter/checker.h"
#include "headgate/wire/resp_parser.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::front::resp {

// The state of one command, from its first call until it is answered.
struct RuleTurn {
  explicit RuleTurn(std::function<void()> on_ready) : pending(std::move(on_ready)) {}

  limiter::Pending pending;
  // Only for HG.ACQUIRE. If the connection ends before the command is answered, the hold gives back
  // a permit that was granted, or that the store grants later.
  struct Acquiring {
    std::string id;
    limiter::PermitHold hold;
  };
  std::unique_ptr<Acquiring> acquiring{};
};

// One per loop. Its memory is reused for all commands.
class RuleVerbs {
 public:
  explicit RuleVerbs(limiter::Checker& checker) : checker_(checker) {}

  // kNow: the map was written. kLater: nothing was written; call again with the same command when
  // the turn's Pending is ready. An error says what is wrong with the command. The turn holds the
  // permit of HG.ACQUIRE.
  enum class Answered : uint8_t { kNow, kLater };
  absl::StatusOr<Answered> Answer(RuleVerb verb, const wire::RespParser& command,
                                  wire::RespWriter& reply, RuleTurn& turn, base::Instant now);

 private:
  absl::StatusOr<Answered> Decide(RuleVerb verb, wire::RespWriter& reply, RuleTurn& turn,
                                  base::Instant now);
  absl::StatusOr<Answered> Acquire(wire::RespWriter& reply, RuleTurn& turn, base::Instant now);
  absl::StatusOr<Answered> Release(wire::RespWriter& reply, RuleTurn& turn, base::Instant now);

  limiter::Checker& checker_;
  RuleArguments arguments_;
  std::string bound_id_;  // of a refund; empty without an id
  limiter::Response response_;
  limiter::Released released_;
};

}  // namespace headgate::front::resp
