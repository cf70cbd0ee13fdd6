// JSON values as text (RFC 8259). Objects and arrays are short here; callers write their braces and
// commas.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headgate::base {

// Appends a string, quotes included. Control characters (C0, DEL and C1) are escaped; invalid UTF-8
// becomes U+FFFD, as in the WHATWG's decoders.
void AppendJsonString(std::string_view text, std::string& out);

void AppendJsonNumber(uint64_t value, std::string& out);
void AppendJsonNumber(int64_t value, std::string& out);

void AppendJsonBool(bool value, std::string& out);

}  // namespace headgate::base
