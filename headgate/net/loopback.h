// Addresses of this machine itself, and peers that only seem to have one.
#pragma once

#include "headgate/base/ip_address.h"
#include "headgate/net/peer.h"

namespace headgate::net {

inline bool IsLoopback(const base::IpAddress& ip) {
  constexpr base::IpNetwork kLoopbackV4{base::IpAddress::FromV4(127u << 24), 96 + 8};
  return kLoopbackV4.Contains(ip) || ip == base::IpAddress{0, 1};
}

// Whether the peer has a loopback address but is not known to be on this machine: a PROXY header
// names the address, or a proxy on this machine does not know its client.
inline bool OnlySeemsLocal(const Peer& peer) {
  return !peer.loopback && peer.ip && IsLoopback(*peer.ip);
}

}  // namespace headgate::net
