// Tells targets that are addresses from targets that are names.
#pragma once

#include <string>

#include "headgate/net/connector.h"
#include "headgate/net/name_lookup.h"
#include "headgate/net/socket_address.h"

namespace headgate::net {

// The addresses of a target that needs no lookup, in the order in which they are tried. Empty: it
// is a name. "localhost" is this machine (RFC 6761), and is not looked up.
SocketAddresses KnownAddresses(const StreamTarget& target);

// The target that is exactly this address, of IPv4 or IPv6.
StreamTarget TargetOf(const SocketAddress& address);

}  // namespace headgate::net
