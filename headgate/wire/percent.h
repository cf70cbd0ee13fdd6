// Percent-encoding (RFC 3986, 2.1).
#pragma once

#include <string_view>

#include "headgate/base/text.h"

namespace headgate::wire {

// The byte that the escape at the start of `text` stands for ("%2F"), or -1 if there is none.
constexpr int PercentByte(std::string_view text) {
  if (text.size() < 3 || text[0] != '%') return -1;
  const int high = base::HexValue(text[1]);
  const int low = base::HexValue(text[2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

}  // namespace headgate::wire
