// Runs the store's scripts in this process like a Redis server: the same text in the same Lua
// (5.1), with `redis`, `struct`, KEYS and ARGV, without script globals, and with the server's
// conversion of values.
//
// One host can serve several keyspaces. It reads no clock: the owner sets the result of TIME.
// Deterministic. Not thread-safe.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "headgate/base/time.h"
#include "headgate/wire/resp_reader.h"
#include "tests/redis/script_host.h"

struct lua_State;

namespace headgate::redis_host {

class LuaHost final : public ScriptHost {
 public:
  LuaHost();
  ~LuaHost() override;
  LuaHost(const LuaHost&) = delete;
  LuaHost& operator=(const LuaHost&) = delete;

  wire::RespValue Eval(Keyspace& keyspace, base::Instant now, std::string_view script,
                       std::string_view key, std::span<const std::string_view> arguments) override;

 private:
  static int Call(lua_State* lua);
  static int ProtectedCall(lua_State* lua);
  static int Sha1Hex(lua_State* lua);
  int RunCommand(bool raise);

  lua_State* lua_;
  Keyspace* keyspace_ = nullptr;  // of the running script
  base::Instant now_{0};
};

}  // namespace headgate::redis_host
