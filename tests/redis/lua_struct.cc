#include "tests/redis/lua_struct.h"

#include <cctype>
#include <cstdint>

#include <lua5.1/lua.hpp>

namespace headgate::redis_host {
namespace {

struct Field {
  char kind;
  size_t size;
};

// The next field of a format, or '\0' at its end.
Field NextField(lua_State* lua, const char*& format) {
  while (*format == '>') ++format;
  if (*format == '\0') return {'\0', 0};
  const char kind = *format++;
  size_t size = 0;
  while (std::isdigit(static_cast<unsigned char>(*format)) != 0)
    size = 10 * size + static_cast<size_t>(*format++ - '0');
  switch (kind) {
    case 'B':
      return {kind, 1};
    case 'I':
      if (size < 1 || size > 4)
        luaL_error(lua, "size of I is not 1 to 4");  // larger ones are no longer exact
      return {kind, size};
    case 'c':
      if (size < 1) luaL_error(lua, "size of c is 0");
      return {kind, size};
    default:
      luaL_error(lua, "invalid format option '%c'", kind);
      return {'\0', 0};
  }
}

int Pack(lua_State* lua) {
  const char* format = luaL_checkstring(lua, 1);
  luaL_Buffer out;  // Lua leaves this function with a longjmp on an error
  luaL_buffinit(lua, &out);
  int argument = 2;
  for (Field field = NextField(lua, format); field.kind != '\0';
       field = NextField(lua, format), ++argument) {
    if (field.kind == 'c') {
      size_t size = 0;
      const char* text = luaL_checklstring(lua, argument, &size);
      luaL_argcheck(lua, size >= field.size, argument, "string too short");
      luaL_addlstring(&out, text, field.size);
      continue;
    }
    const lua_Number number = luaL_checknumber(lua, argument);
    // The server would truncate silently; here it is a bug of the script.
    const auto whole = static_cast<int64_t>(number);
    luaL_argcheck(lua, static_cast<lua_Number>(whole) == number && whole >= 0, argument,
                  "not a whole number");
    luaL_argcheck(lua, whole >> (8 * field.size) == 0, argument, "number too large");
    for (size_t i = field.size; i-- > 0;) luaL_addchar(&out, static_cast<char>(whole >> (8 * i)));
  }
  luaL_pushresult(&out);
  return 1;
}

int Unpack(lua_State* lua) {
  const char* format = luaL_checkstring(lua, 1);
  size_t size = 0;
  const char* text = luaL_checklstring(lua, 2, &size);
  auto at = static_cast<size_t>(luaL_optinteger(lua, 3, 1)) - 1;
  int results = 0;
  lua_settop(lua, 2);
  for (Field field = NextField(lua, format); field.kind != '\0'; field = NextField(lua, format)) {
    luaL_argcheck(lua, at + field.size <= size, 2, "data string too short");
    luaL_checkstack(lua, 2, "too many results");
    if (field.kind == 'c') {
      lua_pushlstring(lua, text + at, field.size);
    } else {
      uint64_t number = 0;
      for (size_t i = 0; i < field.size; ++i)
        number = number << 8 | static_cast<unsigned char>(text[at + i]);
      lua_pushnumber(lua, static_cast<lua_Number>(number));
    }
    at += field.size;
    ++results;
  }
  lua_pushinteger(lua, static_cast<lua_Integer>(at + 1));
  return results + 1;
}

}  // namespace

void OpenStruct(lua_State* lua) {
  lua_newtable(lua);
  lua_pushcfunction(lua, Pack);
  lua_setfield(lua, -2, "pack");
  lua_pushcfunction(lua, Unpack);
  lua_setfield(lua, -2, "unpack");
  lua_setglobal(lua, "struct");
}

}  // namespace headgate::redis_host
