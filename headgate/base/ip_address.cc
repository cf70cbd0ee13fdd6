#include "headgate/base/ip_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace headgate::base {
namespace {

constexpr uint8_t kV4PrefixBits = 96;

uint64_t ReadBigEndian(const uint8_t* bytes) {
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | bytes[i];
  return value;
}

void WriteBigEndian(uint64_t value, uint8_t* bytes) {
  for (int i = 7; i >= 0; --i, value >>= 8) bytes[i] = static_cast<uint8_t>(value);
}

// A number with this many leading ones; `ones` is at most 64.
constexpr uint64_t LeadingOnes(unsigned ones) {
  return ones == 0 ? 0 : ~uint64_t{0} << (64 - ones);
}

IpAddress MaskOf(uint8_t prefix_bits) {
  return {LeadingOnes(std::min<unsigned>(prefix_bits, 64)),
          LeadingOnes(prefix_bits > 64 ? prefix_bits - 64u : 0u)};
}

}  // namespace

IpAddress IpAddress::FromV6(const uint8_t* bytes) {
  return {ReadBigEndian(bytes), ReadBigEndian(bytes + 8)};
}

std::optional<IpAddress> ParseIpAddress(std::string_view text) {
  std::array<char, INET6_ADDRSTRLEN> terminated;
  if (text.size() >= terminated.size() || text.find('\0') != text.npos) return std::nullopt;
  *std::copy(text.begin(), text.end(), terminated.begin()) = '\0';
  if (text.find(':') == text.npos) {
    in_addr v4{};
    if (::inet_pton(AF_INET, terminated.data(), &v4) != 1) return std::nullopt;
    return IpAddress::FromV4(ntohl(v4.s_addr));
  }
  in6_addr v6{};
  if (::inet_pton(AF_INET6, terminated.data(), &v6) != 1) return std::nullopt;
  return IpAddress::FromV6(v6.s6_addr);
}

void AppendIpAddress(const IpAddress& address, std::string& out) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.is_v4()) {
    const in_addr v4{htonl(static_cast<uint32_t>(address.low))};
    ::inet_ntop(AF_INET, &v4, text.data(), text.size());
  } else {
    in6_addr v6{};
    WriteBigEndian(address.high, v6.s6_addr);
    WriteBigEndian(address.low, v6.s6_addr + 8);
    ::inet_ntop(AF_INET6, &v6, text.data(), text.size());
  }
  out.append(text.data());
}

std::string ToString(const IpAddress& address) {
  std::string text;
  AppendIpAddress(address, text);
  return text;
}

IpAddress IpNetwork::last() const {
  const IpAddress mask = MaskOf(prefix_bits);
  return {first.high | ~mask.high, first.low | ~mask.low};
}

IpNetwork NetworkOf(const IpAddress& address, uint8_t prefix_bits) {
  const IpAddress mask = MaskOf(prefix_bits);
  return {{address.high & mask.high, address.low & mask.low}, prefix_bits};
}

std::optional<IpNetwork> ParseIpNetwork(std::string_view text) {
  const size_t slash = text.find('/');
  const auto address = ParseIpAddress(text.substr(0, slash));
  if (!address) return std::nullopt;
  if (slash == text.npos) return NetworkOf(*address, 128);

  // ::ffff:192.0.2.0/120 counts its bits from the start of the IPv6 address.
  const bool v4 = text.find(':') == text.npos;
  const std::string_view digits = text.substr(slash + 1);
  unsigned prefix_bits = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), prefix_bits);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  if (digits.size() > 1 && digits.front() == '0') return std::nullopt;
  if (prefix_bits > (v4 ? 32u : 128u)) return std::nullopt;
  const IpNetwork network =
      NetworkOf(*address, static_cast<uint8_t>(prefix_bits + (v4 ? kV4PrefixBits : 0u)));
  if (network.first != *address) return std::nullopt;
  return network;
}

void AppendIpNetwork(const IpNetwork& network, std::string& out) {
  AppendIpAddress(network.first, out);
  if (network.prefix_bits == 128) return;
  const bool v4 = network.first.is_v4() && network.prefix_bits >= kV4PrefixBits;
  out.push_back('/');
  out.append(std::to_string(network.prefix_bits - (v4 ? kV4PrefixBits : 0)));
}

}  // namespace headgate::base
