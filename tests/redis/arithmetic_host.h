// Runs the C++ arithmetic (headgate/algorithm/lease.h) in place of the scripts of buckets that
// lease: the same keys, values, arguments and answers, so that whoever asks cannot tell. What
// differs from Lua is a bug of either.
//
// Scripts of other buckets (queue, log), and any other text, run in Lua.
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
