// The one form of a request's host that is used for matching and for keys.
//
//   [HOST] or HOST, perhaps with a port → lower case, without port and final dot
//
// A host that two readers could take for two different hosts is refused: a client could otherwise
// reach a backend by a spelling that no rule matches. Proxies forward many texts that are not
// hosts.
#pragma once

#include <string>
#include <string_view>

namespace headgate::wire {

// Sets `host` to the normalized host of "host", "host:port" or "[address]:port" (RFC 3986, 3.2.2
// and 3.2.3). False if it is refused:
// - it is empty, has an empty label ("a..b", ".b"), or a character that no name of a host has
// - it has an escape: some readers decode it, and the others compare it as it is
// - it is a number, or ends with one ("127.1"), but is not an IPv4 address of four: some readers
// take
//   it for one
// - the text in brackets is not an IPv6 address
// - something other than a port of digits follows the host; the port may be empty
// An address in brackets becomes its shortest text (RFC 5952).
bool NormalizeHost(std::string_view text, std::string& host);

}  // namespace headgate::wire
