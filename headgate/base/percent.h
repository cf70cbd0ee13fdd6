// Percent-encoding (RFC 3986, section 2.1).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "headgate/base/text.h"

namespace headgate::base {

// The byte that the escape at the start of `text` stands for ("%2F"), or -1 if there is none.
constexpr int PercentByte(std::string_view text) {
  if (text.size() < 3 || text[0] != '%') return -1;
  const int high = HexValue(text[1]);
  const int low = HexValue(text[2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

// Decodes each %XX. Nothing if a '%' is not followed by two hexadecimal digits, or stands for NUL.
std::optional<std::string> PercentDecoded(std::string_view text);

// Encodes all but ASCII letters, digits, and the characters in `kept`.
std::string PercentEncoded(std::string_view text, std::string_view kept);

// Appends "%XX", in upper case, as the RFC prefers.
void AppendPercent(char byte, std::string& out);

}  // namespace headgate::base
