// The fields that a proxy sets in the requests that it passes on: Via (RFC 9110, 7.6.3),
// X-Forwarded-For, -Proto and -Host, and Forwarded (RFC 7239). All other fields, traceparent among
// them, are passed on as they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/http/message.h"
#include "headgate/net/peer.h"

namespace headgate::proxy {

enum class Forwarding : uint8_t {
  // Adds this hop to the client's fields. X-Forwarded-Proto and -Host stay as the first proxy set
  // them. For a server behind trusted proxies.
  kAppend,
  // Removes the client's fields. For a server that clients reach directly.
  kReplace,
  // Passes on the client's fields.
  kOff,
};
std::string_view Name(Forwarding forwarding);
std::optional<Forwarding> ForwardingByName(std::string_view name);

struct ForwardedOptions {
  Forwarding x_forwarded = Forwarding::kAppend;
  Forwarding forwarded = Forwarding::kOff;
  // The name of this proxy in the Via of requests: a token. Empty: Via is passed on. Answers are
  // not changed: a gateway need not name itself in them (RFC 9110, 7.6.3).
  std::string via = "headgate";
};

// Whether a proxy can have this name in Via: a token, of at most this many bytes.
inline constexpr size_t kViaNameBytesMax = 255;
bool IsViaName(std::string_view name);

// Removes fields that servers could take for the field `name` (wire/alike_names.h): CGI maps both
// X-Client-Id and X_Client_Id to HTTP_X_CLIENT_ID, so a client could forge the proxy's field.
void RemoveLookAlikes(std::string_view name, http::Fields& fields);

// How often `via` names this proxy, which is called `name`.
size_t CountInVia(const http::Fields& fields, std::string_view name);

// Whether Max-Forwards (RFC 9110, 7.6.2) allows to forward the request; if so, it is lowered by
// one. Only OPTIONS and TRACE use it. A value that is not a number is left alone.
bool TakeForward(http::RequestHead& head);

// Removes look-alikes of the fields that it sets, too. `scratch` is memory to reuse.
void SetForwardedFields(const ForwardedOptions& options, const net::Peer& peer,
                        http::RequestHead& head, std::string& scratch);

}  // namespace headgate::proxy
