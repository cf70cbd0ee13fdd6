#include "headgate/app/settings/listen_address.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

namespace headgate::app {
namespace {

absl::StatusOr<uint32_t> ParseMode(const net::Endpoint& endpoint, std::string_view text) {
  if (!endpoint.is_unix())
    return absl::InvalidArgumentError("only a Unix socket has a mode: unix:PATH?mode=0660");
  uint32_t mode = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  if (error != std::errc() || end != text.data() + text.size() || mode > 0777) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is not a mode: it has octal digits, such as 0660", text));
  }
  return mode;
}

absl::StatusOr<base::IpNetwork> ParseProxies(std::string_view text) {
  if (const auto network = base::ParseIpNetwork(text)) return *network;
  return absl::InvalidArgumentError(fmt::format(
      "'{}' is not a network: it is written 10.0.0.0/8, 2001:db8::/32, 10.0.0.1 or unix", text));
}

}  // namespace

std::string_view AddressPart(std::string_view text) { return text.substr(0, text.find('?')); }

std::string_view HintOnListening(const net::Endpoint& endpoint) {
  return endpoint.is_unix()
             ? "choose another path in a directory that exists, or remove the file if it is not "
               "needed"
             : "choose another address; port 0 takes a free one: --listen 127.0.0.1:0";
}

absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view text) {
  const std::string_view address = AddressPart(text);
  ListenAddress parsed;
  parsed.tls = address.starts_with(kTlsAddress);
  HEADGATE_ASSIGN_OR_RETURN(
      parsed.endpoint, net::ParseEndpoint(address.substr(parsed.tls ? kTlsAddress.size() : 0)));
  std::vector<base::IpNetwork> proxies;
  std::string_view rest = text.substr(std::min(address.size() + 1, text.size()));
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(item.size() + 1, rest.size()));
    const std::string_view name = item.substr(0, item.find('='));
    const std::string_view value = item.substr(std::min(name.size() + 1, item.size()));
    if ((name == "fields" && parsed.fields) || (name == "mode" && parsed.mode) ||
        (name == "refusal_file" && !parsed.refusal_file.empty()))
      return absl::InvalidArgumentError(fmt::format("{} comes twice", name));
    if (name == "fields") {
      parsed.fields = wire::DialectByName(value);
      if (!parsed.fields) {
        return absl::InvalidArgumentError(fmt::format("'{}' is no dialect of rate limit fields: {}",
                                                      value, base::DialectNames()));
      }
    } else if (name == "refusal_file") {
      if (value.empty()) return absl::InvalidArgumentError("refusal_file names no file");
      parsed.refusal_file = value;
    } else if (name == "mode") {
      HEADGATE_ASSIGN_OR_RETURN(parsed.mode, ParseMode(parsed.endpoint, value));
    } else if (name == "proxy_from") {
      if (value == "unix") {
        parsed.proxies.unix_sockets = true;
      } else {
        HEADGATE_ASSIGN_OR_RETURN(proxies.emplace_back(), ParseProxies(value));
      }
    } else {
      return absl::InvalidArgumentError(fmt::format(
          "a listener has no setting '{}'; it has: fields, mode, proxy_from, refusal_file", name));
    }
  }
  parsed.proxies.networks = base::IpNetworkSet(std::move(proxies));
  return parsed;
}

}  // namespace headgate::app
