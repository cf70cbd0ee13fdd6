#include "headgate/base/utf8.h"

namespace headgate::base {

Utf8Prefix FirstUtf8(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {.bytes = 1, .well_formed = true};
  size_t size = 0;
  // The range of the second byte.
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    size = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    size = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    size = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {.bytes = 1, .well_formed = false};
  }
  for (size_t i = 1; i < size; ++i) {
    if (i == text.size() || byte(i) < low || byte(i) > high)
      return {.bytes = i, .well_formed = false};
    low = 0x80;
    high = 0xBF;
  }
  return {.bytes = size, .well_formed = true};
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Prefix first = FirstUtf8(text);
    if (!first.well_formed) return false;
    text.remove_prefix(first.bytes);
  }
  return true;
}

bool BeginsWithC1Control(std::string_view text) {
  return text.size() >= 2 && text[0] == '\xC2' &&
         (static_cast<unsigned char>(text[1]) & 0xE0) == 0x80;
}

}  // namespace headgate::base
