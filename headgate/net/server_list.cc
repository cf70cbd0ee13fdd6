#include "headgate/net/server_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "headgate/base/text.h"

namespace headgate::net {
namespace {

constexpr size_t kHostBytesMax = 255;

absl::Status BadServer(std::string_view what) {
  return absl::InvalidArgumentError(std::string(what));
}

std::optional<uint16_t> ServerPortOf(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

bool IsHostCharacter(char c) {
  return base::IsLetterOrDigit(c) || c == '.' || c == '-' || c == '_';
}

absl::StatusOr<StreamTarget> ParseServer(std::string_view text, uint16_t default_port) {
  StreamTarget server{.port = default_port};
  std::string_view rest;
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos)
      return BadServer(fmt::format("the ']' of '{}' is missing", text));
    server.host = text.substr(1, close - 1);
    rest = text.substr(close + 1);
    if (server.host.find(':') == std::string::npos ||
        server.host.find_first_not_of("0123456789abcdefABCDEF:.") != std::string::npos) {
      return BadServer(fmt::format("'{}' is not an IPv6 address", server.host));
    }
  } else {
    const size_t colon = std::min(text.find(':'), text.size());
    server.host = text.substr(0, colon);
    rest = text.substr(colon);
    if (rest.find(':', 1) != std::string_view::npos) {
      return BadServer("a server has more than one ':'; an IPv6 address goes in square brackets");
    }
    if (!std::all_of(server.host.begin(), server.host.end(), IsHostCharacter)) {
      return BadServer(fmt::format("'{}' is not a host", server.host));
    }
  }
  if (server.host.empty()) return BadServer("a host is missing");
  if (server.host.size() > kHostBytesMax) return BadServer("a host has more than 255 bytes");
  if (rest.empty()) return server;
  const std::string_view digits = rest.substr(1);
  if (rest[0] != ':' || !std::all_of(digits.begin(), digits.end(), base::IsDigit)) {
    // The text may be a password without a host, so it is not repeated.
    return BadServer(fmt::format(
        "a ':' and a port (1 to 65535) may follow '{}', but other text does", server.host));
  }
  const auto port = ServerPortOf(digits);
  if (!port) return BadServer(fmt::format("'{}' is not a port (1 to 65535)", digits));
  server.port = *port;
  return server;
}

}  // namespace

absl::StatusOr<std::vector<StreamTarget>> ParseServerList(std::string_view text,
                                                          uint16_t default_port) {
  std::vector<StreamTarget> servers;
  while (true) {
    const size_t comma = std::min(text.find(','), text.size());
    HEADGATE_ASSIGN_OR_RETURN(StreamTarget server,
                              ParseServer(text.substr(0, comma), default_port));
    if (std::find(servers.begin(), servers.end(), server) != servers.end())
      return BadServer(fmt::format("{} is named twice", server.ToString()));
    servers.push_back(std::move(server));
    if (comma == text.size()) return servers;
    text.remove_prefix(comma + 1);
    if (servers.size() == kServersMax)
      return BadServer(fmt::format("more than {} servers", kServersMax));
  }
}

}  // namespace headgate::net
