// The rules for requests and responses that readers of HTTP/1 and HTTP/2 share, so that one version
// is no way around the rules of the other.
#pragma once

#include <string_view>

namespace headgate::http {

// Whether a tunnel of this protocol, with or without a version, would carry HTTP again: "h2c",
// "HTTP/2.0", "TLS/1.3". An upstream that accepted it would take further requests inside, which
// nobody judges or counts.
bool CarriesHttp(std::string_view protocol);

}  // namespace headgate::http
