// Runs a store's scripts in this process: Lua itself (lua_host.h), or C++ that does the same
// (arithmetic_host.h).
#pragma once

#include <span>
#include <string_view>

#include "headgate/base/time.h"
#include "headgate/wire/resp_reader.h"
#include "tests/redis/keyspace.h"

namespace headgate::redis_host {

class ScriptHost {
 public:
  virtual ~ScriptHost() = default;

  // EVAL on `keyspace`, as on a server whose clock shows `now`. A script that fails returns an
  // error.
  virtual wire::RespValue Eval(Keyspace& keyspace, base::Instant now, std::string_view script,
                               std::string_view key,
                               std::span<const std::string_view> arguments) = 0;
};

}  // namespace headgate::redis_host
