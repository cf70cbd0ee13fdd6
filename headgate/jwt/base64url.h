// Base64 with the URL-safe alphabet and without padding (RFC 4648, section 5), as JSON Web
// Signatures use it (RFC 7515).
#pragma once

#include <string>
#include <string_view>

namespace headgate::jwt {

// Appends the decoded bytes. Strict, so that each value has one spelling: false for padding, other
// characters, an impossible length, or unused bits that are not 0. `out` is then unspecified.
bool DecodeBase64Url(std::string_view text, std::string& out);

}  // namespace headgate::jwt
