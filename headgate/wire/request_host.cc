#include "headgate/wire/request_host.h"

#include <algorithm>

#include "headgate/base/ip_address.h"
#include "headgate/base/text.h"

namespace headgate::wire {
namespace {

// Stricter than RFC 3986's reg-name, which allows `*`, `,` and `(`. No host has them.
bool IsNameCharacter(char c) {
  return base::IsLetterOrDigit(c) || c == '-' || c == '.' || c == '_';
}

// Whether readers of URLs take the name for an IPv4 address: its last label is a number, also in
// hexadecimal ("127.1", "0x7f.0.0.1").
bool SeemsAddress(std::string_view name) {
  const std::string_view label = name.substr(name.rfind('.') + 1);
  if (std::all_of(label.begin(), label.end(), base::IsDigit)) return true;
  return label.size() > 1 && label[0] == '0' && (label[1] == 'x' || label[1] == 'X') &&
         std::all_of(label.begin() + 2, label.end(), [](char c) { return base::HexValue(c) >= 0; });
}

// The rest is empty, or a colon and digits.
bool IsPortOrEmpty(std::string_view rest) {
  if (rest.empty()) return true;
  return rest.front() == ':' && std::all_of(rest.begin() + 1, rest.end(), base::IsDigit);
}

bool NormalizeAddress(std::string_view text, std::string& host) {
  const size_t end = text.find(']');
  if (end == text.npos || !IsPortOrEmpty(text.substr(end + 1))) return false;
  const auto address = base::ParseIpAddress(text.substr(1, end - 1));
  if (!address || text.substr(1, end - 1).find(':') == text.npos) return false;
  host.assign("[");
  base::AppendIpAddress(*address, host);
  host.push_back(']');
  return true;
}

}  // namespace

bool NormalizeHost(std::string_view text, std::string& host) {
  if (text.starts_with('[')) return NormalizeAddress(text, host);
  const size_t end = std::min(text.find(':'), text.size());
  if (!IsPortOrEmpty(text.substr(end))) return false;
  std::string_view name = text.substr(0, end);
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.empty() || name.starts_with('.') || name.ends_with('.') ||
      name.find("..") != name.npos || !std::all_of(name.begin(), name.end(), IsNameCharacter)) {
    return false;
  }
  if (SeemsAddress(name) && !base::ParseIpAddress(name)) return false;
  host.assign(name);
  for (char& c : host) c = base::ToLower(c);
  return true;
}

}  // namespace headgate::wire
