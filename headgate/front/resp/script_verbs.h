// EVAL, EVALSHA and SCRIPT, for the scripts of one call (throttle_script.h).
#pragma once

#include "headgate/base/status.h"
#include "headgate/front/resp/scripts.h"
#include "headgate/wire/resp_parser.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::front::resp {

// One per loop. Its memory is reused for all commands.
class ScriptVerbs {
 public:
  explicit ScriptVerbs(Scripts& scripts) : cache_(scripts) {}

  // The command that EVAL (`by_text`) or EVALSHA calls; its words belong to `command` and to the
  // script, and are valid until the next call. An error is the text of the reply.
  absl::StatusOr<CommandWords> Expand(bool by_text, const wire::RespParser& command);

  // SCRIPT LOAD, EXISTS and FLUSH. `may_use_state`: whether the client may flush. False: an error.
  bool Script(const wire::RespParser& command, bool may_use_state, wire::RespWriter& reply);

 private:
  ScriptCache cache_;
  ScriptHandle script_;  // of the last expansion
  ScriptArguments arguments_;
};

}  // namespace headgate::front::resp
