// Percent-encoding (RFC 3986, section 2.1).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headgate::base {

// Decodes each %XX. Nothing if a '%' is not followed by two hexadecimal digits, or stands for NUL.
std::optional<std::string> PercentDecoded(std::string_view text);

// Encodes all but ASCII letters, digits, and the characters in `kept`.
std::string PercentEncoded(std::string_view text, std::string_view kept);

// Appends "%XX", in upper case, as the RFC prefers.
void AppendPercent(char byte, std::string& out);

}  // namespace headgate::base
