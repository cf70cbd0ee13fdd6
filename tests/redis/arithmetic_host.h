// Runs the C++ arithmetic (headgate/algorithm/lease.h) in place of the scripts of buckets that
// lease, with the same keys, values, arguments and answers. Callers cannot tell the difference; if
// the arithmetic differs from Lua, one of them has a bug.
//
// Scripts of other buckets (queue, log) and all other scripts run in Lua.
#pragma once

#include "tests/redis/lua_host.h"

namespace headgate::redis_host {

class ArithmeticHost final : public ScriptHost {
 public:
  explicit ArithmeticHost(ScriptHost& lua) : lua_(lua) {}

  wire::RespValue Eval(Keyspace& keyspace, base::Instant now, std::string_view script,
                       std::string_view key, std::span<const std::string_view> arguments) override;

 private:
  ScriptHost& lua_;
};

}  // namespace headgate::redis_host
