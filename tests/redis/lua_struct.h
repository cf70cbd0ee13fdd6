// The library `struct` that Redis gives its scripts, as far as our scripts use it: big-endian
// (`>`), `B`, `I` with a size, `c` with a size.
#pragma once

struct lua_State;

namespace headgate::redis_host {

// Defines the global `struct`.
void OpenStruct(lua_State* lua);

}  // namespace headgate::redis_host
