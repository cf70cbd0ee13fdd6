// A Lua script and the name by which a server knows it.
#pragma once

#include <string>
#include <string_view>

namespace headgate::store::redis {

struct Script {
  std::string_view name;  // for people
  std::string_view text;
  std::string sha1;  // of the text, 40 lower-case hexadecimal digits
};

}  // namespace headgate::store::redis
