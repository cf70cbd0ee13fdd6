// The address of the client behind trusted proxies.
//
//   X-Forwarded-For: 6.6.6.6, 203.0.113.7, 10.0.0.2        peer: 10.0.0.1
//                    └ written by the client  └ trusted      └ trusted
//                             └ the client's address
//
// The chain is walked from the right: each trusted proxy is believed about the peer that it names.
// Everything to the left of the first address that is not trusted was written by the client.
#pragma once

#include <cstdint>
#include <optional>

#include "headgate/base/ip_network_set.h"
#include "headgate/mapping/described_request.h"

namespace headgate::mapping {

enum class ForwardingHeader : uint8_t {
  kXForwardedFor,
  kForwarded,
  kNone,  // the client is the other end of the proxy's connection, or else the peer
};

struct ClientAddressOptions {
  ForwardingHeader header = ForwardingHeader::kXForwardedFor;
  // The proxies whose word is believed.
  base::IpNetworkSet trusted_proxies{};
  // If not 0: how many proxies stand in front of Headgate. The client is then the address at this
  // position from the right, whatever the addresses are.
  uint32_t trusted_hops = 0;
};

enum class ClientAddressProblem : uint8_t {
  kMissing,  // the proxy does not say for whom it asks
  kInvalid,  // the chain is malformed, too long, or names no address where one is needed
};

struct ClientAddress {
  std::optional<base::IpAddress> address{};
  std::optional<base::IpAddress>
      sent{};  // as proxies state it; may be IPv6 that contains `address`
  ClientAddressProblem problem = ClientAddressProblem::kMissing;  // if there is no address
};

// The client of a request from a trusted proxy. If the IPv6 address contains an IPv4 address, the
// IPv4 address counts. Clients behind a translator (NAT64, SIIT) or a Teredo server share one IPv6
// network, and a 6to4 site has 65,536 networks.
ClientAddress FindClientAddress(const DescribedRequest& request,
                                const ClientAddressOptions& options);

}  // namespace headgate::mapping
