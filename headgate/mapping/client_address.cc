#include "headgate/mapping/client_address.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "headgate/base/text.h"
#include "headgate/wire/forwarded.h"

namespace headgate::mapping {
namespace {

using Syntax = wire::ForwardedChain::Syntax;

constexpr ClientAddress kInvalid{.address = std::nullopt,
                                 .problem = ClientAddressProblem::kInvalid};
constexpr ClientAddress kMissing{};

ClientAddress FindUntranslated(const DescribedRequest& request,
                               const ClientAddressOptions& options) {
  if (!request.client && request.client_statement != ClientStatement::kNone)
    return request.client_statement == ClientStatement::kMissing ? kMissing : kInvalid;
  if (options.header == ForwardingHeader::kNone || !request.is_forwarded)
    return {.address = request.client ? request.client : request.peer};
  if (request.client && !options.trusted_proxies.Contains(*request.client))
    return {.address = request.client};
  const bool standard = options.header == ForwardingHeader::kForwarded;
  const std::string_view name = standard ? "Forwarded" : "X-Forwarded-For";
  wire::ForwardedChain chain;
  for (const auto& [field, value] : request.fields) {
    if (base::EqualsIgnoreCase(field, name) &&
        !chain.AddLine(standard ? Syntax::kForwarded : Syntax::kXForwardedFor, value)) {
      return kInvalid;
    }
  }
  if (chain.size() == 0)
    return request.client ? ClientAddress{.address = request.client} : kMissing;
  // If the chain has fewer members than there are proxies, proxies wrote all of them.
  const size_t hops = options.trusted_hops == 0
                          ? chain.size()
                          : std::min<size_t>(options.trusted_hops, chain.size());
  std::optional<base::IpAddress> address;
  for (size_t hop = 1; hop <= hops; ++hop) {
    address = chain.Address(chain.size() - hop);
    if (options.trusted_hops != 0) continue;
    if (!address) return kInvalid;
    if (!options.trusted_proxies.Contains(*address)) break;
  }
  return address ? ClientAddress{.address = address} : kInvalid;
}

// An IPv6 network whose addresses contain an IPv4 address: the client's, or that of the site that
// owns all of them.
struct Embedding {
  base::IpNetwork network{};
  uint8_t offset_bits = 96;  // of the IPv4 address
  bool is_inverted = false;
};
constexpr std::array<Embedding, 4> kEmbeddings = {{
    {.network = {.first = {0x0064'ff9b'0000'0000, 0}, .prefix_bits = 96}},  // RFC 6052
    {.network = {.first = {0, 0xffff'0000'0000'0000}, .prefix_bits = 96}},  // RFC 2765
    {.network = {.first = {0x2002'0000'0000'0000, 0}, .prefix_bits = 16},
     .offset_bits = 16},  // RFC 3056
    {.network = {.first = {0x2001'0000'0000'0000, 0}, .prefix_bits = 32},
     .is_inverted = true},  // RFC 4380
}};

base::IpAddress WithoutEmbedding(const base::IpAddress& address) {
  for (const Embedding& embedding : kEmbeddings) {
    if (!embedding.network.Contains(address)) continue;
    const uint64_t bits = embedding.offset_bits == 16 ? address.high >> 16 : address.low;
    return base::IpAddress::FromV4(static_cast<uint32_t>(embedding.is_inverted ? ~bits : bits));
  }
  return address;
}

}  // namespace

ClientAddress FindClientAddress(const DescribedRequest& request,
                                const ClientAddressOptions& options) {
  ClientAddress client = FindUntranslated(request, options);
  client.sent = client.address;
  if (client.address) client.address = WithoutEmbedding(*client.address);
  return client;
}

}  // namespace headgate::mapping
