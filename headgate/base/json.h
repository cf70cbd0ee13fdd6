// Writes JSON values as text (RFC 8259). Callers write the braces and commas of objects and arrays
// themselves, because those are short here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headgate::base {

// Appends a string with its quotes. Escapes control characters (C0, DEL and C1) and replaces
// invalid UTF-8 by U+FFFD, as the WHATWG's decoders do.
void AppendJsonString(std::string_view text, std::string& out);

void AppendJsonNumber(uint64_t value, std::string& out);
void AppendJsonNumber(int64_t value, std::string& out);

void AppendJsonBool(bool value, std::string& out);

}  // namespace headgate::base
