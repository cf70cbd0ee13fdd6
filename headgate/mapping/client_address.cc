#include "headgate/mapping/client_address.h"

#include <algorithm>
#include <string_view>

#include "headgate/base/text.h"
#include "headgate/wire/forwarded.h"

namespace headgate::mapping {
namespace {

using Syntax = wire::ForwardedChain::Syntax;

constexpr ClientAddress kInvalid{.address = std::nullopt,
                                 .problem = ClientAddressProblem::kInvalid};
constexpr ClientAddress kMissing{};

}  // namespace

ClientAddress FindClientAddress(const RequestHead& request, const ClientAddressOptions& options) {
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
  // With fewer members than proxies, all members were written by proxies.
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

}  // namespace headgate::mapping
