#include "headgate/net/endpoint.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/un.h>

#include <array>
#include <charconv>
#include <optional>

namespace headgate::net {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";

absl::Status BadAddress(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format("address '{}': {}", text, why));
}

std::optional<uint16_t> PortOf(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return port;
}

// The address in the system's spelling; empty if it is not an address of that family.
std::optional<std::string> Canonical(int family, std::string_view host) {
  std::array<unsigned char, sizeof(in6_addr)> binary{};
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (inet_pton(family, std::string(host).c_str(), binary.data()) != 1) return std::nullopt;
  if (inet_ntop(family, binary.data(), text.data(), text.size()) == nullptr) return std::nullopt;
  return std::string(text.data());
}

absl::StatusOr<Endpoint> ParseUnix(std::string_view text) {
  const std::string_view path = text.substr(kUnixPrefix.size());
  if (path.empty()) return BadAddress(text, "the path of the Unix socket is missing");
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return BadAddress(text, fmt::format("the path has {} bytes; the system takes at most {}",
                                        path.size(), sizeof(sockaddr_un::sun_path) - 1));
  }
  if (path.find('\0') != std::string_view::npos)
    return BadAddress(text, "the path holds a NUL byte");
  return Endpoint{.kind = Endpoint::Kind::kUnix, .address = std::string(path), .port = 0};
}

}  // namespace

absl::StatusOr<Endpoint> ParseEndpoint(std::string_view text) {
  if (text.starts_with(kUnixPrefix)) return ParseUnix(text);

  if (const size_t scheme = text.find("://"); scheme != std::string_view::npos) {
    return BadAddress(
        text, fmt::format("an address has no scheme: leave out '{}'", text.substr(0, scheme + 3)));
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.ends_with(']'))
    return BadAddress(text, "the port is missing");
  const std::string_view host = text.substr(0, colon);
  const std::string_view port_text = text.substr(colon + 1);
  const std::optional<uint16_t> port = PortOf(port_text);
  if (!port) return BadAddress(text, fmt::format("'{}' is not a port (0 to 65535)", port_text));

  if (host.empty())
    return Endpoint{.kind = Endpoint::Kind::kAllInterfaces, .address = "", .port = *port};
  if (host == "localhost")
    return Endpoint{.kind = Endpoint::Kind::kLocalhost, .address = "", .port = *port};
  if (host.front() == '[') {
    if (host.back() != ']') return BadAddress(text, "the ']' is missing");
    const auto address = Canonical(AF_INET6, host.substr(1, host.size() - 2));
    if (!address) return BadAddress(text, fmt::format("'{}' is not an IPv6 address", host));
    return Endpoint{.kind = Endpoint::Kind::kIpv6, .address = *address, .port = *port};
  }
  if (host.find(':') != std::string_view::npos)
    return BadAddress(text, "an IPv6 address goes in square brackets");
  const auto address = Canonical(AF_INET, host);
  if (!address)
    return BadAddress(
        text, fmt::format("'{}' is not an IPv4 address, and host names are not resolved", host));
  return Endpoint{.kind = Endpoint::Kind::kIpv4, .address = *address, .port = *port};
}

bool Endpoint::loopback() const {
  switch (kind) {
    case Kind::kUnix:
    case Kind::kLocalhost:
      return true;
    case Kind::kAllInterfaces:
      return false;
    case Kind::kIpv4:
      return address.starts_with("127.");
    case Kind::kIpv6:
      return address == "::1" || address.starts_with("::ffff:127.");
  }
  return false;
}

std::string Endpoint::ToString() const {
  switch (kind) {
    case Kind::kUnix:
      return fmt::format("unix:{}", address);
    case Kind::kLocalhost:
      return fmt::format("localhost:{}", port);
    case Kind::kAllInterfaces:
      return fmt::format(":{}", port);
    case Kind::kIpv4:
      return fmt::format("{}:{}", address, port);
    case Kind::kIpv6:
      return fmt::format("[{}]:{}", address, port);
  }
  return "";
}

}  // namespace headgate::net
