// The PROXY protocol's header, with which a proxy names the client of a connection that it passes
// on (HAProxy's doc/proxy-protocol.txt):
//
//   version 1   PROXY TCP4 192.0.2.7 10.0.0.1 40000 8080\r\n
//   version 2   signature (12 bytes) version and command (1) family (1) length (2) addresses { TLV
//   }
//
// Strict: whatever is ambiguous is refused. A header that is read wrongly would give a client
// another's address.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/base/ip_address.h"

namespace headgate::net {

struct ProxyHeader {
  enum class Client : uint8_t {
    kProxyItself,  // the proxy checks whether this server is alive
    kUnknown,      // the proxy does not know, or the client has no IP address
    kNamed,
  };
  Client client = Client::kUnknown;
  base::IpAddress ip{};
  uint16_t port = 0;
};

// Reads one header, in as many pieces as it arrives.
class ProxyHeaderReader {
 public:
  static constexpr size_t kBytesMax = 4096;

  enum class State : uint8_t { kMore, kDone, kInvalid };

  // Takes the bytes of `waiting` that belong to the header, and returns their number. Call it only
  // while the state is kMore.
  size_t Take(std::string_view waiting);

  State state() const { return state_; }
  // If kDone.
  const ProxyHeader& header() const { return header_; }

 private:
  // The length of the whole header as far as it is known: more than the number of bytes while it is
  // incomplete. 0: not valid.
  size_t LengthOf(std::string_view bytes) const;

  State state_ = State::kMore;
  std::string bytes_;
  ProxyHeader header_;
};

}  // namespace headgate::net
