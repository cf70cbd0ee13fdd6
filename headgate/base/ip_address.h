// IP addresses and networks. An IPv4 address and its IPv4-mapped IPv6 form (RFC 4291, 2.5.5.2) are
// one address, so that a client has one key whichever socket it arrives on.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace headgate::base {

// Ordered by value, so that a network is a range. IPv4 addresses are stored as ::ffff:a.b.c.d.
struct IpAddress {
  uint64_t high = 0;  // the first 64 bits
  uint64_t low = 0;

  auto operator<=>(const IpAddress&) const = default;

  template <typename H>
  friend H AbslHashValue(H hash, const IpAddress& address) {
    return H::combine(std::move(hash), address.high, address.low);
  }

  static constexpr IpAddress FromV4(uint32_t bits) {
    return {0, uint64_t{0xffff'0000'0000} | bits};
  }
  // 16 bytes in network order.
  static IpAddress FromV6(const uint8_t* bytes);

  constexpr bool is_v4() const { return high == 0 && low >> 32 == 0xffff; }
};

// Strict: four decimal numbers without leading zeros, or RFC 4291's text. Refuses ports, brackets,
// zones ("%eth0") and white space.
std::optional<IpAddress> ParseIpAddress(std::string_view text);

// Appends "192.0.2.1" or "2001:db8::1" (RFC 5952).
void AppendIpAddress(const IpAddress& address, std::string& out);
std::string ToString(const IpAddress& address);

// All addresses with the same leading bits.
struct IpNetwork {
  IpAddress first;  // all other bits are 0
  // The length of the prefix in 128 bits. For an IPv4 network it is 96 more than its text says.
  uint8_t prefix_bits = 128;

  IpAddress last() const;
  bool Contains(const IpAddress& address) const { return first <= address && address <= last(); }
  auto operator<=>(const IpNetwork&) const = default;
};

// The network of this size that contains the address. `prefix_bits` is at most 128.
IpNetwork NetworkOf(const IpAddress& address, uint8_t prefix_bits);

// "10.0.0.0/8", "2001:db8::/32", or an address alone. A network with bits set behind its prefix is
// refused: it is probably a typing error.
std::optional<IpNetwork> ParseIpNetwork(std::string_view text);

// Appends "2001:db8::/64"; an address alone if the network has only one.
void AppendIpNetwork(const IpNetwork& network, std::string& out);

}  // namespace headgate::base
