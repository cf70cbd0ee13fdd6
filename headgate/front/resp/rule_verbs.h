// The verbs that use rules: HG.CHECK, HG.PEEK, HG.REFUND, HG.RESET, and for permits HG.ACQUIRE and
// HG.RELEASE.
//
// The replies are maps with the fields of /v1/check, /v1/acquire and /v1/release. See
// docs/reference/redis-protocol.md.
#pragma once

#include <memory>
#include <string>

#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/front/resp/rule_arguments.h"
#include "headgate/front/resp/turn.h"
#include "headgate/limiter/checker.h"
#include "headgate/wire/resp_parser.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::front::resp {

CommandKind KindOf(RuleVerb verb);

// One per loop. Its memory is reused for all commands.
class RuleVerbs {
 public:
  explicit RuleVerbs(limiter::Checker& checker);
  ~RuleVerbs();
  RuleVerbs(const RuleVerbs&) = delete;

  // Writes the reply, or an error that says what is wrong with the command. The queue of the turn
  // gets the permit of HG.ACQUIRE.
  Answered Answer(RuleVerb verb, const wire::RespParser& command, wire::RespVersion version,
                  const Turn& turn);

 private:
  class Late;

  absl::Status Ask(RuleVerb verb, const wire::RespParser& command, Late& late, base::Instant now);
  Answered Reply(Late& late, const absl::Status& status, std::string& output) const;

  limiter::Checker& checker_;
  RuleArguments arguments_;
  std::string bound_id_;        // of a refund; empty without an id
  std::unique_ptr<Late> next_;  // for the next command
  limiter::Response response_;
  limiter::Released released_;
};

}  // namespace headgate::front::resp
