// HTTP's token: methods and field names (RFC 9110, 5.6.2).
#pragma once

#include <algorithm>
#include <string_view>

#include "headgate/base/text.h"

namespace headgate::http {

constexpr bool IsTokenChar(char c) {
  if (base::IsLetterOrDigit(c)) return true;
  return std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

constexpr bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenChar);
}

}  // namespace headgate::http
