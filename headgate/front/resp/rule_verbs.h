// The verbs that use rules: HG.CHECK, HG.PEEK, HG.REFUND, HG.RESET.
//
//   HG.CHECK domain [COST n] ENTRIES m key value … [ENTRIES m key value …]
//                            └─ one descriptor ──┘
//
// The reply is a map with the fields of /v1/check. See docs/reference/redis-protocol.md.
#pragma once

#include <vector>

#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/limiter/checker.h"
#include "headgate/wire/resp_parser.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::front::resp {

enum class RuleVerb : uint8_t { kCheck, kPeek, kRefund, kReset };

// One per loop. Its memory is reused for all commands.
class RuleVerbs {
 public:
  explicit RuleVerbs(limiter::Checker& checker) : checker_(checker) {}

  // kNow: the map was written. kLater: nothing was written; call again with the same command when
  // `pending` is ready. An error says what is wrong with the command.
  enum class Answered : uint8_t { kNow, kLater };
  absl::StatusOr<Answered> Answer(RuleVerb verb, const wire::RespParser& command,
                                  wire::RespWriter& reply, limiter::Pending& pending,
                                  base::Instant now);

 private:
  absl::Status ReadDescriptors(RuleVerb verb, const wire::RespParser& command);

  limiter::Checker& checker_;
  std::vector<rule::Entry> entries_;
  std::vector<rule::Descriptor> descriptors_;
  limiter::Response response_;
};

}  // namespace headgate::front::resp
