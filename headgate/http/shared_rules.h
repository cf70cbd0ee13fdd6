// The rules for requests and responses that readers of HTTP/1 and HTTP/2 share, so that one version
// is no way around the rules of the other.
#pragma once

#include <string_view>

namespace headgate::http {

// Whether a tunnel of this protocol, with or without a version, would carry HTTP again: "h2c",
// "HTTP/2.0", "TLS/1.3". An upstream that accepted it would take further requests inside, which
// nobody judges or counts.
bool CarriesHttp(std::string_view protocol);

// A host with or without a port: a name, an IPv4 address, or an address in brackets (RFC 3986,
// 3.2.2), without userinfo. A colon needs a port after it.
bool IsAuthority(std::string_view text);

}  // namespace headgate::http
