// Looks up one value by its name in a query (application/x-www-form-urlencoded) or in the lines of
// Cookie (RFC 6265). A name that occurs twice is reported and not answered: readers differ in which
// of the values they take.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headgate::wire {

enum class Lookup : uint8_t {
  kFound,
  kAbsent,
  kTwice,    // the name occurs more than once
  kInvalid,  // an escape in it is broken, or stands for a control character; a cookie cannot have
             // it
};

// Appends the decoded value to `out` if it is found. `query` is the part behind '?'. `+` is a
// space.
Lookup FindInQuery(std::string_view query, std::string_view name, std::string& out);

// Searches one line of Cookie; if the cookie is found, sets `value` to a part of it. Quotes around
// a value are removed. Names of cookies are case-sensitive. kInvalid if the value has another
// quote, a backslash or a byte above 0x7f, which RFC 6265 does not allow: some readers take "b\ad"
// for bad.
Lookup FindInCookies(std::string_view line, std::string_view name, std::string_view& value);

}  // namespace headgate::wire
