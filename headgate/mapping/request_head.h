// The head of a request that a proxy asks about, in the words of the client's request.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "headgate/base/ip_address.h"
#include "headgate/wire/named_values.h"

namespace headgate::mapping {

using HeaderField = std::pair<std::string_view, std::string_view>;

// Views that are valid during one call. The proxy is trusted: it wrote, or checked, all of this.
struct RequestHead {
  std::string_view method{};  // empty: the proxy does not say
  std::string_view host{};    // with or without a port; empty: the proxy does not say
  std::string_view target{};  // path and query as the client sent them; empty: not said
  std::span<const HeaderField> fields{};
  // The other end of the connection to Headgate; absent for a Unix socket.
  std::optional<base::IpAddress> peer{};
  // The other end of the proxy's connection, if the proxy's protocol states it. It is the client,
  // unless it is a trusted proxy itself: then the forwarding headers name the client.
  std::optional<base::IpAddress> client{};
  // The size of the body, if this process is the proxy and it is known before the body comes.
  std::optional<uint64_t> body_bytes{};
  // Whether a proxy wrote the forwarding headers. Otherwise they are the client's own words, and
  // only `client` or `peer` counts.
  bool is_forwarded = true;
  // Whether `peer` can be one of trusted_proxies at all.
  bool may_be_trusted = true;

  // The value of the only header of this name (case-insensitive). Proxies and applications differ
  // in which of two they take.
  wire::Lookup FindHeader(std::string_view name, std::string_view& value) const;
  // The decoded value of the only cookie of this name (case-sensitive). It is appended to `text` if
  // it is not a part of the request.
  wire::Lookup FindCookie(std::string_view name, std::string& text, std::string_view& value) const;

  std::string_view path() const { return target.substr(0, target.find('?')); }
  std::string_view query() const {
    const size_t mark = target.find('?');
    return mark == target.npos ? std::string_view() : target.substr(mark + 1);
  }
};

}  // namespace headgate::mapping
