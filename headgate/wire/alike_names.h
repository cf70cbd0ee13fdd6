// Names that some readers take for the same name. A client could send two of them: one with the
// value that the limiter counts, and one with the value that the backend reads.
#pragma once

#include <cstdint>
#include <string_view>

namespace headgate::wire {

enum class NameCoding : uint8_t {
  kForm,     // of a parameter: percent-encoded, and `+` is a space
  kEscaped,  // of a cookie: percent-encoded, as PHP 7.3 and Rack 2.1 took it
  kPlain,    // as it stands
};

// Whether some reader takes the name of a parameter or cookie for `wanted`. PHP makes `_` of `.`,
// of a space and of a `[` that is not closed, and skips spaces in front and all behind a NUL.
// Django and Node's cookie parsers remove spaces of Unicode behind a name. `wanted[]` and
// `wanted[x]` are arrays in PHP and Rack. ASP.NET ignores case and decodes `%u0061`. readings.h
// lists the characters. If `wanted` has brackets itself, other members of its array are other
// names.
bool IsAlikeName(std::string_view name, NameCoding coding, std::string_view wanted);

// Whether two names of header fields differ only in characters that are not letters or digits, or
// in case. CGI makes HTTP_X_API_KEY of X-API-Key, X_API_Key and X.API.Key.
bool IsAlikeField(std::string_view a, std::string_view b);

}  // namespace headgate::wire
