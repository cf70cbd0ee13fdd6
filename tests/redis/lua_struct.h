// `struct` as Redis brings it to its scripts, by what the scripts here use of it: big-endian (`>`),
// `B`, `I` with a size, `c` with a size.
#pragma once

struct lua_State;

namespace headgate::redis_host {

// Makes the global `struct`.
void OpenStruct(lua_State* lua);

}  // namespace headgate::redis_host
