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
  kInvalid,  // readers differ in what it is: an escape is broken, or stands for a control character
};

// Appends the decoded value to `out` if it is found. `query` is the part behind '?'. `+` is a
// space.
Lookup FindInQuery(std::string_view query, std::string_view name, std::string& out);

// Searches one line of Cookie; if the cookie is found, sets `value` to a part of it. Quotes around
// a value are removed. Names of cookies are case-sensitive. kInvalid if the value has another
// quote, a backslash or a byte above 0x7f, which RFC 6265 does not allow: some readers take "b\ad"
// for bad. The value is not decoded.
Lookup FindInCookies(std::string_view line, std::string_view name, std::string_view& value);

// Appends the value of a cookie as most readers decode it: each escape once; `+` stays. If all
// escapes are broken ("50%"), all readers keep the text as it is. False if readers differ:
// - good and broken escapes are mixed: Node's decodeURIComponent keeps all of the text, PHP decodes
//   what it can
// - the result is not UTF-8: likewise
// - an escape stands for a control character
bool DecodeCookie(std::string_view value, std::string& out);

}  // namespace headgate::wire
