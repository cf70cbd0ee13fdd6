#include "headgate/client/http/origin.h"

#include <fmt/format.h>

#include "headgate/base/text.h"
#include "headgate/net/server_list.h"

namespace headgate::client::http {
namespace {

constexpr uint16_t kHttpPort = 80;
constexpr uint16_t kHttpsPort = 443;

absl::Status Bad(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

// libcurl gets the host in a URL, so nothing may end it early.
bool IsHostCharacter(char c) {
  return base::IsLetterOrDigit(c) || c == '-' || c == '.' || c == '_' || c == ':';
}

}  // namespace

std::string Origin::Authority() const {
  std::string authority = host.find(':') == std::string::npos ? host : "[" + host + "]";
  if (port != (tls ? kHttpsPort : kHttpPort)) authority += ":" + std::to_string(port);
  return authority;
}

std::string Origin::ToString() const { return (tls ? "https://" : "http://") + Authority(); }

absl::StatusOr<Origin> ParseOrigin(std::string_view text) {
  Origin origin;
  if (text.starts_with("https://")) {
    origin.tls = true;
    text.remove_prefix(8);
  } else if (text.starts_with("http://")) {
    text.remove_prefix(7);
  } else {
    return Bad("it does not begin with http:// or https://");
  }
  if (text.ends_with('/')) text.remove_suffix(1);
  if (text.find('@') != std::string_view::npos) return Bad("it has a user; remove it");
  if (text.find_first_of("/?#,") != std::string_view::npos)
    return Bad("it is more than a scheme, a host and a port");
  HEADGATE_ASSIGN_OR_RETURN(auto servers,
                            net::ParseServerList(text, origin.tls ? kHttpsPort : kHttpPort));
  origin.host = servers.front().host;
  origin.port = servers.front().port;
  for (const char c : origin.host)
    if (!IsHostCharacter(c)) return Bad("its host is not a name or an address");
  return origin;
}

}  // namespace headgate::client::http
