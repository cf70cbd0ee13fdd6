// Reads the answer to INFO: lines of `name:value`.
#pragma once

#include <algorithm>
#include <string_view>

namespace headgate::store::redis {

// The value of a field, or nullopt if there is no such field.
inline std::string_view InfoField(std::string_view info, std::string_view name) {
  for (size_t at = 0; at < info.size();) {
    const size_t end = std::min(info.find('\n', at), info.size());
    std::string_view line = info.substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ':') {
      return line.substr(name.size() + 1);
    }
  }
  return {};
}

}  // namespace headgate::store::redis
