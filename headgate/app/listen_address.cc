#include "headgate/app/listen_address.h"

#include <fmt/format.h>

#include <algorithm>

namespace headgate::app {
namespace {

constexpr std::string_view kTls = "tls:";

}  // namespace

std::string_view AddressPart(std::string_view text) { return text.substr(0, text.find('?')); }

absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view text) {
  const std::string_view address = AddressPart(text);
  ListenAddress parsed;
  parsed.tls = address.starts_with(kTls);
  HEADGATE_ASSIGN_OR_RETURN(parsed.endpoint,
                            net::ParseEndpoint(address.substr(parsed.tls ? kTls.size() : 0)));
  std::string_view rest = text.substr(std::min(address.size() + 1, text.size()));
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(item.size() + 1, rest.size()));
    const std::string_view name = item.substr(0, item.find('='));
    const std::string_view value = item.substr(std::min(name.size() + 1, item.size()));
    if (name != "fields") {
      return absl::InvalidArgumentError(
          fmt::format("a listener has no setting '{}'; it has: fields", name));
    }
    parsed.fields = wire::DialectByName(value);
    if (!parsed.fields) {
      return absl::InvalidArgumentError(fmt::format(
          "'{}' is no dialect of rate limit fields: all, draft, draft-7, draft-6, draft-3, github, "
          "twitter or none",
          value));
    }
  }
  return parsed;
}

}  // namespace headgate::app
