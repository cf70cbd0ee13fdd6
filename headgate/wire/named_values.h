// Looks up one value by its name in a query (application/x-www-form-urlencoded) or in the lines of
// Cookie (RFC 6265). If a name occurs twice, that is reported instead of a value, because readers
// differ in which of the values they take. Names that some reader takes for this one count as this
// name (alike_names.h). readings.h has examples.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headgate/wire/why.h"

namespace headgate::wire {

enum class Lookup : uint8_t {
  kFound,
  kAbsent,
  kTwice,    // the name occurs more than once
  kInvalid,  // readers would read different values, or differ in whether one has this name
};

// Appends the decoded value to `out` if it is found. `query` is the part behind '?'. `+` is a
// space. kInvalid if
// - the query has a `;` anywhere: some readers separate parameters there
// - the value has a broken escape, or stands for a control character or for bytes that are not
//   UTF-8
// - the name has a control character
Lookup FindInQuery(std::string_view query, std::string_view name, std::string& out,
                   Why* why = nullptr);

// Searches one line of Cookie; if the cookie is found, sets `value` to a part of it. Quotes around
// a value are removed. kInvalid if
// - the value has another quote, a space, a comma, a backslash, a control character or a byte above
//   0x7f, which RFC 6265 does not allow: some readers take "b\ad" for bad, or end it at the space
// - the name and a `=` follow a space, comma, quote, control character or byte above 0x7f in
// another
//   cookie, where some readers begin a cookie
// The value is not decoded.
Lookup FindInCookies(std::string_view line, std::string_view name, std::string_view& value,
                     Why* why = nullptr);

// Appends the value of a cookie as most readers decode it: each escape once. A space becomes `+`,
// because some readers take `+` for a space. If all escapes are broken ("50%"), all readers keep
// the text as it is. False if readers differ:
// - good and broken escapes are mixed: Node's decodeURIComponent keeps all of the text, PHP decodes
//   what it can
// - the result is not UTF-8: likewise
// - an escape stands for a control character
bool DecodeCookie(std::string_view value, std::string& out, Why* why = nullptr);

}  // namespace headgate::wire
