// The rules for requests and responses that readers of HTTP/1 and HTTP/2 share, so that nobody gets
// around the rules of one version by speaking the other.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace headgate::http {

// Whether a tunnel of this protocol, with or without a version, would carry HTTP again: "h2c",
// "HTTP/2.0", "TLS/1.3". An upstream that accepted it would take further requests inside, which
// nobody judges or counts.
bool CarriesHttp(std::string_view protocol);

// A host with or without a port: a name, an IPv4 address, or an address in brackets (RFC 3986,
// 3.2.2), without userinfo. A colon needs a port after it.
bool IsAuthority(std::string_view text);

// Content-Length or Transfer-Encoding: the fields that define where a body ends.
bool IsFramingField(std::string_view name);
// Whether a name differs from a framing field only in `_` instead of `-`. Many programs treat the
// two as equal.
bool LooksLikeFramingField(std::string_view name);

// Whether a field is meant for every recipient, so that removing it, or adding it in a trailer,
// would change the meaning, the origin or the rights of the request. `more` are further such names.
// `_` counts as `-`.
bool IsEndToEnd(std::string_view name, std::span<const std::string> more);

// Whether a field with this name may be in trailers: neither end-to-end, as above, nor one that
// routes or frames (RFC 9110, 6.5.1).
bool MayBeInTrailer(std::string_view name, std::span<const std::string> never);

}  // namespace headgate::http
