#include "headgate/http/known_hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headgate/base/text.h"
#include "headgate/http/handler.h"

namespace headgate::http {
namespace {

bool IsPort(std::string_view text) {
  return text.size() <= 5 && std::all_of(text.begin(), text.end(), base::IsDigit);
}

bool IsIpv4(std::string_view text) {
  for (int part = 0; part < 4; ++part) {
    size_t digits = 0;
    int value = 0;
    while (digits < text.size() && digits < 3 && base::IsDigit(text[digits]))
      value = value * 10 + (text[digits++] - '0');
    if (digits == 0 || value > 255) return false;
    text.remove_prefix(digits);
    if (part < 3) {
      if (text.empty() || text.front() != '.') return false;
      text.remove_prefix(1);
    }
  }
  return text.empty();
}

// The part between the brackets. Looser than the grammar, which is safe: no name that can be
// resolved has brackets.
bool IsIpv6(std::string_view text) {
  constexpr std::string_view kAddressChars = "0123456789abcdefABCDEF:.";
  return text.size() >= 2 && text.find_first_not_of(kAddressChars) == std::string_view::npos;
}

// "localhost" and names below ".localhost" never leave the machine (RFC 6761).
bool IsLocalhost(std::string_view name) {
  constexpr std::string_view kLocalhost = "localhost";
  if (name.size() < kLocalhost.size()) return false;
  const size_t before = name.size() - kLocalhost.size();
  return EqualsIgnoreCase(name.substr(before), kLocalhost) &&
         (before == 0 || name[before - 1] == '.');
}

bool IsNameCharacter(char c) {
  return base::IsLetterOrDigit(c) || c == '.' || c == '-' || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// `name` is a host name, or "*." and a host name.
bool Matches(std::string_view name, std::string_view host) {
  if (!name.starts_with("*.")) return EqualsIgnoreCase(name, host);
  const std::string_view end = name.substr(1);  // includes the dot
  return host.size() > end.size() && EqualsIgnoreCase(host.substr(host.size() - end.size()), end);
}

}  // namespace

KnownHosts::KnownHosts(std::vector<std::string> names) : names_(std::move(names)) {
  any_ = std::find(names_.begin(), names_.end(), "*") != names_.end();
}

bool KnownHosts::Knows(std::string_view host) const {
  if (any_) return true;
  if (host.starts_with('[')) {
    const size_t end = host.find(']');
    if (end == std::string_view::npos || !IsIpv6(host.substr(1, end - 1))) return false;
    const std::string_view rest = host.substr(end + 1);
    return rest.empty() || (rest.front() == ':' && IsPort(rest.substr(1)));
  }
  const size_t colon = host.find(':');
  if (colon != std::string_view::npos) {
    if (!IsPort(host.substr(colon + 1))) return false;
    host = host.substr(0, colon);
  }
  if (host.ends_with('.')) host.remove_suffix(1);
  if (IsIpv4(host) || IsLocalhost(host)) return true;
  return std::any_of(names_.begin(), names_.end(),
                     [&](const std::string& name) { return Matches(name, host); });
}

absl::Status KnownHosts::Check(std::string_view name) {
  const std::string_view plain = name.starts_with("*.") ? name.substr(2) : name;
  if (name == "*") return absl::OkStatus();
  if (!plain.empty() && std::all_of(plain.begin(), plain.end(), IsNameCharacter))
    return absl::OkStatus();
  if (plain.find('*') != std::string_view::npos) {
    return absl::InvalidArgumentError(
        fmt::format("'{}': a * may only be the whole first label, as in *.example.com", name));
  }
  return absl::InvalidArgumentError(fmt::format("'{}' is not a host name without a port", name));
}

}  // namespace headgate::http
