// The values of Authorization and Proxy-Authorization (RFC 9110, 11.4): a scheme, spaces, and
// either one word or a list of parameters. All servers read `bearer  k1` as `Bearer k1`, so a
// client must not have a bucket for each spelling. readings.h has examples.
#pragma once

#include <string>
#include <string_view>

#include "headgate/wire/named_values.h"

namespace headgate::wire {

// Whether the header has credentials.
bool HasCredentials(std::string_view header);

// Appends the one form of the credentials: the scheme as IANA registers it, other schemes in lower
// case, and one space. A value of one word has no scheme, and stays. False if readers differ:
// - more words follow that are not parameters: some readers use the second word of `Bearer k1 x`
// - the scheme is Bearer or Token, and the word has a comma, a semicolon, a quote, or a '=' before
// its
//   end: Rails and Laravel read a part of it. `Token token="k1"` has the form `Token k1`
// - the scheme is Basic, and its word is not base64 in its one form: decoders skip characters, and
//   do not need the padding
bool CanonicalCredentials(std::string_view value, std::string& out);

// The one word behind a scheme, or alone. Many applications accept the word whatever the scheme is,
// so it counts with every scheme. kAbsent if there is none: it is empty, has parameters, or is the
// user and password of Basic. kInvalid if CanonicalCredentials is false.
Lookup BearerOf(std::string_view value, std::string_view& token);

}  // namespace headgate::wire
