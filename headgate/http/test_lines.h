// The fields of a response as HTTP/1 has them, for tests.
#pragma once

#include <string>

#include "headgate/http/fields.h"

namespace headgate::http {

inline std::string Lines(const Fields& fields) {
  std::string lines;
  for (const auto [name, value] : fields)
    lines.append(name).append(": ").append(value).append("\r\n");
  return lines;
}

}  // namespace headgate::http
