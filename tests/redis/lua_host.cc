#include "tests/redis/lua_host.h"

#include <array>
#include <vector>

#include <fmt/format.h>
#include <lua5.1/lua.hpp>

#include "headgate/base/check.h"
#include "headgate/wire/digest.h"
#include "tests/redis/lua_struct.h"

namespace headgate::redis_host {
namespace {

using wire::RespValue;

// Pushes a reply in the form that Redis gives to scripts: nil is false; a status and an error are
// tables.
void Push(lua_State* lua, const RespValue& reply) {
  switch (reply.kind) {
    case RespValue::Kind::kNull:
      lua_pushboolean(lua, 0);
      return;
    case RespValue::Kind::kInteger:
      lua_pushnumber(lua, static_cast<lua_Number>(reply.integer));
      return;
    case RespValue::Kind::kSimple:
    case RespValue::Kind::kError:
      lua_newtable(lua);
      lua_pushlstring(lua, reply.text.data(), reply.text.size());
      lua_setfield(lua, -2, reply.is_error() ? "err" : "ok");
      return;
    case RespValue::Kind::kArray:
      lua_createtable(lua, static_cast<int>(reply.items.size()), 0);
      for (size_t i = 0; i < reply.items.size(); ++i) {
        Push(lua, reply.items[i]);
        lua_rawseti(lua, -2, static_cast<int>(i + 1));
      }
      return;
    default:
      lua_pushlstring(lua, reply.text.data(), reply.text.size());
  }
}

// The reply that a server makes from the result of a script: numbers lose their fraction.
RespValue ReplyOf(lua_State* lua, int index) {
  RespValue reply;
  switch (lua_type(lua, index)) {
    case LUA_TNUMBER:
      reply.kind = RespValue::Kind::kInteger;
      reply.integer = static_cast<int64_t>(lua_tonumber(lua, index));
      break;
    case LUA_TSTRING: {
      size_t size = 0;
      const char* text = lua_tolstring(lua, index, &size);
      reply.kind = RespValue::Kind::kBulk;
      reply.text.assign(text, size);
      break;
    }
    case LUA_TBOOLEAN:
      if (lua_toboolean(lua, index) != 0)
        reply = {.kind = RespValue::Kind::kInteger, .integer = 1, .text = {}, .items = {}};
      break;
    case LUA_TTABLE: {
      for (const auto& [field, kind] :
           {std::pair{"err", RespValue::Kind::kError}, {"ok", RespValue::Kind::kSimple}}) {
        lua_getfield(lua, index, field);
        const bool is = lua_isstring(lua, -1) != 0;
        if (is) reply = {.kind = kind, .integer = 0, .text = lua_tostring(lua, -1), .items = {}};
        lua_pop(lua, 1);
        if (is) return reply;
      }
      reply.kind = RespValue::Kind::kArray;
      for (int i = 1;; ++i) {
        lua_rawgeti(lua, index, i);
        const bool end = lua_isnil(lua, -1);
        if (!end) reply.items.push_back(ReplyOf(lua, lua_gettop(lua)));
        lua_pop(lua, 1);
        if (end) break;
      }
      break;
    }
    default:
      break;
  }
  return reply;
}

LuaHost* HostOf(lua_State* lua) {
  lua_getfield(lua, LUA_REGISTRYINDEX, "host");
  auto* host = static_cast<LuaHost*>(lua_touserdata(lua, -1));
  lua_pop(lua, 1);
  return host;
}

int RefuseGlobal(lua_State* lua) {
  return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'",
                    lua_tostring(lua, 2));
}

// Opens a library without the functions that a server removes.
void Open(lua_State* lua, lua_CFunction open, const char* name) {
  lua_pushcfunction(lua, open);
  lua_pushstring(lua, name);
  lua_call(lua, 1, 0);
}

}  // namespace

LuaHost::LuaHost() : lua_(luaL_newstate()) {
  HEADGATE_CHECK(lua_ != nullptr);
  Open(lua_, luaopen_base, "");
  Open(lua_, luaopen_table, LUA_TABLIBNAME);
  Open(lua_, luaopen_string, LUA_STRLIBNAME);
  Open(lua_, luaopen_math, LUA_MATHLIBNAME);
  OpenStruct(lua_);
  lua_pushlightuserdata(lua_, this);
  lua_setfield(lua_, LUA_REGISTRYINDEX, "host");
  lua_newtable(lua_);
  lua_pushcfunction(lua_, Call);
  lua_setfield(lua_, -2, "call");
  lua_pushcfunction(lua_, ProtectedCall);
  lua_setfield(lua_, -2, "pcall");
  lua_pushcfunction(lua_, Sha1Hex);
  lua_setfield(lua_, -2, "sha1hex");
  lua_setglobal(lua_, "redis");
  for (const char* name : {"KEYS", "ARGV"}) {
    lua_newtable(lua_);
    lua_setglobal(lua_, name);
  }
  lua_newtable(lua_);  // compiled scripts, by text
  lua_setfield(lua_, LUA_REGISTRYINDEX, "scripts");
  lua_newtable(lua_);
  for (const char* event : {"__index", "__newindex"}) {
    lua_pushcfunction(lua_, RefuseGlobal);
    lua_setfield(lua_, -2, event);
  }
  lua_setmetatable(lua_, LUA_GLOBALSINDEX);
}

LuaHost::~LuaHost() { lua_close(lua_); }

int LuaHost::Call(lua_State* lua) { return HostOf(lua)->RunCommand(true); }
int LuaHost::ProtectedCall(lua_State* lua) { return HostOf(lua)->RunCommand(false); }

int LuaHost::Sha1Hex(lua_State* lua) {
  size_t size = 0;
  const char* text = luaL_checklstring(lua, 1, &size);
  const std::string digits = wire::DigestHex(wire::Digest::kSha1, {text, size});
  lua_pushlstring(lua, digits.data(), digits.size());
  return 1;
}

int LuaHost::RunCommand(bool raise) {
  bool failed = false;
  {
    std::vector<std::string> command;
    for (int i = 1; i <= lua_gettop(lua_); ++i) {
      if (lua_type(lua_, i) == LUA_TNUMBER) {
        command.push_back(fmt::format("{:.17g}", lua_tonumber(lua_, i)));
        continue;
      }
      size_t size = 0;
      const char* text = lua_tolstring(lua_, i, &size);
      if (text == nullptr) {
        command.clear();
        break;
      }
      command.emplace_back(text, size);
    }
    const RespValue reply =
        command.empty()
            ? RespValue{.kind = RespValue::Kind::kError,
                        .integer = 0,
                        .text = "ERR Lua redis lib command arguments must be strings or integers",
                        .items = {}}
            : keyspace_->Run(command, now_);
    failed = raise && reply.is_error();
    if (failed) {
      lua_pushlstring(lua_, reply.text.data(), reply.text.size());
    } else {
      Push(lua_, reply);
    }
  }
  // Lua leaves this function with a longjmp, so no object here may need a destructor.
  if (failed) return lua_error(lua_);
  return 1;
}

RespValue LuaHost::Eval(Keyspace& keyspace, base::Instant now, std::string_view script,
                        std::string_view key, std::span<const std::string_view> arguments) {
  keyspace_ = &keyspace;
  now_ = now;
  lua_settop(lua_, 0);
  lua_getfield(lua_, LUA_REGISTRYINDEX, "scripts");
  lua_pushlstring(lua_, script.data(), script.size());
  lua_rawget(lua_, 1);
  if (lua_isnil(lua_, -1)) {
    lua_pop(lua_, 1);
    if (luaL_loadbuffer(lua_, script.data(), script.size(), "@user_script") != 0) {
      return {.kind = RespValue::Kind::kError,
              .integer = 0,
              .text = lua_tostring(lua_, -1),
              .items = {}};
    }
    lua_pushlstring(lua_, script.data(), script.size());
    lua_pushvalue(lua_, -2);
    lua_rawset(lua_, 1);
  }
  const auto set = [&](const char* name, std::span<const std::string_view> values) {
    lua_pushstring(lua_, name);
    lua_createtable(lua_, static_cast<int>(values.size()), 0);
    for (size_t i = 0; i < values.size(); ++i) {
      lua_pushlstring(lua_, values[i].data(), values[i].size());
      lua_rawseti(lua_, -2, static_cast<int>(i + 1));
    }
    lua_rawset(lua_, LUA_GLOBALSINDEX);
  };
  set("KEYS", std::array{key});
  set("ARGV", arguments);
  if (lua_pcall(lua_, 0, 1, 0) != 0) {
    return {.kind = RespValue::Kind::kError,
            .integer = 0,
            .text = fmt::format("ERR {}", lua_tostring(lua_, -1)),
            .items = {}};
  }
  return ReplyOf(lua_, lua_gettop(lua_));
}

}  // namespace headgate::redis_host
