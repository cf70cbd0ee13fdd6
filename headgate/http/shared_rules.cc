#include "headgate/http/shared_rules.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "headgate/base/text.h"

namespace headgate::http {
namespace {

using base::EqualsIgnoreCase;

constexpr std::array<std::string_view, 5> kCarriers = {"h2c", "h2", "h3", "http", "tls"};

constexpr std::string_view kEndToEnd[] = {
    "Host",          "Transfer-Encoding",
    "Authorization", "Proxy-Authorization",
    "Cookie",        "Set-Cookie",
    "Forwarded",     "X-Real-IP",
    "Via",           "Expect",
    "Cache-Control", "Trailer",
    "Connection",
};

// The fields of one connection that are not end-to-end.
constexpr std::string_view kOfConnection[] = {
    "TE", "Upgrade", "Keep-Alive", "Proxy-Connection", "HTTP2-Settings",
};

constexpr char Folded(char c) { return c == '_' ? '-' : base::ToLower(c); }

bool StartsWithName(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), text.begin(),
                    [](char a, char b) { return Folded(a) == Folded(b); });
}

bool IsName(std::string_view text, std::string_view name) {
  return text.size() == name.size() && StartsWithName(text, name);
}

template <typename Names>
bool IsOneOf(std::string_view text, const Names& names) {
  return std::any_of(std::begin(names), std::end(names),
                     [text](std::string_view name) { return IsName(text, name); });
}

}  // namespace

bool IsFramingField(std::string_view name) {
  return EqualsIgnoreCase(name, "Content-Length") || EqualsIgnoreCase(name, "Transfer-Encoding");
}

bool LooksLikeFramingField(std::string_view name) {
  return name.find('_') != name.npos &&
         (IsName(name, "Content-Length") || IsName(name, "Transfer-Encoding"));
}

bool CarriesHttp(std::string_view protocol) {
  const std::string_view name = protocol.substr(0, protocol.find('/'));
  return std::any_of(kCarriers.begin(), kCarriers.end(),
                     [name](std::string_view carrier) { return EqualsIgnoreCase(name, carrier); });
}

bool IsAuthority(std::string_view text) {
  constexpr size_t kPortDigitsMax = 5;
  size_t end = 0;
  if (text.starts_with('[')) {
    end = text.find(']');
    if (end == text.npos || end < 2) return false;
    const std::string_view address = text.substr(1, end - 1);
    if (!std::all_of(address.begin(), address.end(), [](char c) {
          return base::IsLetterOrDigit(c) || c == ':' || c == '.' || c == '%' || c == '-';
        })) {
      return false;
    }
    ++end;
  } else {
    end = std::min(text.find(':'), text.size());
    const std::string_view name = text.substr(0, end);
    if (name.empty() || !std::all_of(name.begin(), name.end(), [](char c) {
          return base::IsLetterOrDigit(c) ||
                 std::string_view("-._~%!$&'()*+;=").find(c) != std::string_view::npos;
        })) {
      return false;
    }
  }
  if (end == text.size()) return true;
  const std::string_view port = text.substr(end + 1);
  return text[end] == ':' && !port.empty() && port.size() <= kPortDigitsMax &&
         std::all_of(port.begin(), port.end(), base::IsDigit);
}

bool IsEndToEnd(std::string_view name, std::span<const std::string> more) {
  return IsOneOf(name, kEndToEnd) || StartsWithName(name, "Content-") ||
         StartsWithName(name, "X-Forwarded-") || IsOneOf(name, more);
}

bool MayBeInTrailer(std::string_view name, std::span<const std::string> never) {
  return !IsEndToEnd(name, never) && !IsOneOf(name, kOfConnection);
}

}  // namespace headgate::http
