#include "headgate/proxy/upstream/list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "headgate/net/endpoint.h"
#include "headgate/net/server_list.h"
#include "headgate/rule/quote.h"

namespace headgate::proxy::upstream {
namespace {

struct Scheme {
  std::string_view prefix;
  bool http2;
  bool tls;
};
constexpr std::array<Scheme, 4> kSchemes = {{{"http://", false, false},
                                             {"h2c://", true, false},
                                             {"https://", false, true},
                                             {"h2://", true, true}}};
constexpr std::string_view kUnix = "unix:";
constexpr uint16_t kDefaultPort = 80;
constexpr uint16_t kDefaultTlsPort = 443;
constexpr size_t kUpstreamsMax = 256;

absl::StatusOr<net::StreamTarget> ParseTarget(std::string_view text, bool tls) {
  if (text.starts_with(kUnix)) {
    if (tls) return absl::InvalidArgumentError("TLS needs HOST:PORT, not a Unix socket");
    HEADGATE_ASSIGN_OR_RETURN(net::Endpoint endpoint, net::ParseEndpoint(text));
    return net::StreamTarget{.unix_path = std::move(endpoint.address)};
  }
  if (text.ends_with('/')) text.remove_suffix(1);
  HEADGATE_ASSIGN_OR_RETURN(const std::vector<net::StreamTarget> target,
                            net::ParseServerList(text, tls ? kDefaultTlsPort : kDefaultPort));
  return target.front();
}

const Scheme* SchemeOf(std::string_view text) {
  const auto found = std::find_if(kSchemes.begin(), kSchemes.end(), [&](const Scheme& scheme) {
    return text.starts_with(scheme.prefix);
  });
  return found == kSchemes.end() ? nullptr : &*found;
}

}  // namespace

absl::StatusOr<List> ParseList(std::string_view text) {
  List list;
  if (text.empty()) return absl::InvalidArgumentError("no upstream is given");
  bool first = true;
  for (bool last = false; !last;) {
    std::string_view item = text.substr(0, text.find(','));
    last = item.size() == text.size();
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const Scheme* const scheme = SchemeOf(item);
    if (first && scheme == nullptr)
      return absl::InvalidArgumentError(fmt::format(
          "{} does not begin with http://, h2c://, https:// or h2://", rule::Quote(item)));
    if (!first && scheme != nullptr && (scheme->http2 != list.http2 || scheme->tls != list.tls))
      return absl::InvalidArgumentError("all upstreams must have the same scheme");
    if (first) {
      list.http2 = scheme->http2;
      list.tls = scheme->tls;
    }
    first = false;
    if (scheme != nullptr) item.remove_prefix(scheme->prefix.size());
    if (list.targets.size() == kUpstreamsMax)
      return absl::InvalidArgumentError(fmt::format("more than {} upstreams", kUpstreamsMax));
    HEADGATE_ASSIGN_OR_RETURN(const net::StreamTarget target, ParseTarget(item, list.tls));
    if (std::find(list.targets.begin(), list.targets.end(), target) != list.targets.end())
      return absl::InvalidArgumentError(fmt::format("{} is named twice", target.ToString()));
    list.targets.push_back(target);
  }
  return list;
}

std::string ToString(const List& upstreams) {
  std::string_view scheme = upstreams.http2 ? "h2c://" : "http://";
  if (upstreams.tls) scheme = upstreams.http2 ? "h2://" : "https://";
  std::string text;
  for (const net::StreamTarget& target : upstreams.targets) {
    text.append(text.empty() ? scheme : ",");
    text.append(target.ToString());
  }
  return text;
}

}  // namespace headgate::proxy::upstream
