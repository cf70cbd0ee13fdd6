// Runs the C++ arithmetic (headgate/algorithm/lease.h) in place of the scripts of buckets that
// grant leases, with the same keys, values, arguments and answers. Any difference between the two
// is a bug in one of them.
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
