// A pattern for normalized hosts:
//
//   example.com      this name                192.0.2.1, [2001:db8::1]   this address
//   *.example.com    every name below it
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headgate::mapping {

// The pattern in the form in which hosts of requests are normalized. Empty if it could never match:
// it has a port, a `*` elsewhere than as its first label, a `*` before an address, or a character
// that no name of a host has.
std::optional<std::string> ParseHostPattern(std::string_view text);

// `pattern` comes from ParseHostPattern. Another pattern as `host` matches only if all hosts of
// that pattern do.
bool HostMatches(std::string_view pattern, std::string_view host);

}  // namespace headgate::mapping
