// Well-formed UTF-8 (Unicode, table 3-7): no overlong forms, no surrogates, nothing beyond
// U+10FFFF.
#pragma once

#include <cstddef>
#include <string_view>

namespace headgate::base {

struct Utf8Prefix {
  // At least 1. For ill-formed text, the number of bytes that one U+FFFD replaces: the longest
  // prefix of a well-formed character, or one byte.
  size_t bytes;
  bool well_formed;
};

// The character at the front of `text`, which must not be empty.
Utf8Prefix FirstUtf8(std::string_view text);

// Whether all of `text` is well-formed.
bool IsUtf8(std::string_view text);

// Whether `text` begins with one of the control characters U+0080 to U+009F, which terminals
// interpret.
bool BeginsWithC1Control(std::string_view text);

}  // namespace headgate::base
