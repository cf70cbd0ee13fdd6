// EVAL, EVALSHA and SCRIPT, for the scripts of one call (throttle_script.h).
#pragma once

#include "absl/functional/function_ref.h"
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

  // SCRIPT LOAD, EXISTS and FLUSH. False: an error. FLUSH has a right of its own: `refuses` replies
  // if the client may not run the named command, and returns true then.
  bool Script(const wire::RespParser& command, absl::FunctionRef<bool(std::string_view)> refuses,
              wire::RespWriter& reply);

 private:
  ScriptCache cache_;
  ScriptHandle script_;  // of the last expansion
  ScriptArguments arguments_;
};

}  // namespace headgate::front::resp
