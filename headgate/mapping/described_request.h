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

// How much the protocol of a proxy says about the client if it does not name an address.
enum class ClientStatement : uint8_t {
  kNone,        // the protocol never names it: the forwarding headers or the peer do
  kMissing,     // it could, but did not this time: the client is unknown
  kUnreadable,  // the stated client is not an address
};

using HeaderField = std::pair<std::string_view, std::string_view>;

// Views that are valid during one call. The proxy is trusted: it wrote, or checked, all of this.
struct DescribedRequest {
  std::string_view method{};  // empty: the proxy does not say
  std::string_view host{};    // with or without a port; empty: the proxy does not say
  std::string_view target{};  // path and query as the client sent them; empty: not said
  std::span<const HeaderField> fields{};
  // The other end of the connection to Headgate; absent for a Unix socket.
  std::optional<base::IpAddress> peer{};
  // The other end of the proxy's connection, if the proxy's protocol states it. It is the client,
  // unless it is a trusted proxy itself: then the forwarding headers name the client.
  std::optional<base::IpAddress> client{};
  ClientStatement client_statement = ClientStatement::kNone;  // without `client`
  // The size of the body, if this process is the proxy and it is known before the body comes.
  std::optional<uint64_t> body_bytes{};
  // Whether a proxy wrote the forwarding headers. Otherwise they are the client's own words, and
  // only `client` or `peer` counts.
  bool is_forwarded = true;
  // Whether the application gets the normalized path if a mapping needs it, because this process is
  // the proxy. Then it does not matter whether the application resolves dot segments.
  bool is_path_normalized = false;
  // Whether this process is the proxy, and lets this preflight of CORS pass (wire/preflight.h).
  bool is_preflight = false;
  // Whether `peer` can be one of trusted_proxies at all.
  bool may_be_trusted = true;

  // The value of the only field of this name (case-insensitive). Proxies and applications differ
  // in which of two they take.
  wire::Lookup FindField(std::string_view name, std::string_view& value) const;
  // The same of a header that the client has sent. kInvalid if there is another field that
  // applications could take for it (wire/alike_names.h), even if the header itself is absent.
  wire::Lookup FindHeader(std::string_view name, std::string_view& value,
                          wire::Why* why = nullptr) const;
  // The decoded value of the only cookie of this name (case-sensitive). It is appended to `text` if
  // it is not a part of the request.
  wire::Lookup FindCookie(std::string_view name, std::string& text, std::string_view& value,
                          wire::Why* why = nullptr) const;

  std::string_view path() const { return target.substr(0, target.find('?')); }
  std::string_view query() const {
    const size_t mark = target.find('?');
    return mark == target.npos ? std::string_view() : target.substr(mark + 1);
  }
};

}  // namespace headgate::mapping
