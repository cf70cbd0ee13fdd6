#include "headgate/mapping/host_pattern.h"

#include "headgate/base/ip_address.h"
#include "headgate/base/text.h"
#include "headgate/wire/request_host.h"

namespace headgate::mapping {
namespace {

constexpr std::string_view kBelow = "*.";

}  // namespace

std::optional<std::string> ParseHostPattern(std::string_view text) {
  const bool is_below = text.starts_with(kBelow);
  if (is_below) text.remove_prefix(kBelow.size());
  const bool is_bracketed = text.starts_with('[') && text.ends_with(']');
  std::string host;
  if ((!is_bracketed && text.find(':') != text.npos) || !wire::NormalizeHost(text, host))
    return std::nullopt;
  const bool is_address = is_bracketed || base::ParseIpAddress(host);
  if (is_address && is_below) return std::nullopt;
  return is_below ? std::string(kBelow) + host : host;
}

bool HostMatches(std::string_view pattern, std::string_view host) {
  if (!pattern.starts_with(kBelow)) return pattern == host;
  const std::string_view suffix = pattern.substr(1);
  return host.size() > suffix.size() && host.ends_with(suffix);
}

}  // namespace headgate::mapping
