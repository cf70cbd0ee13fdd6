#include "headgate/wire/forwarded.h"

#include <algorithm>

#include "headgate/base/text.h"

namespace headgate::wire {
namespace {

bool IsPort(std::string_view text) {
  if (text.starts_with('_')) {
    return std::all_of(text.begin() + 1, text.end(), [](char c) {
      return base::IsLetterOrDigit(c) || c == '.' || c == '_' || c == '-';
    });
  }
  return !text.empty() && text.size() <= 5 && std::all_of(text.begin(), text.end(), base::IsDigit);
}

// `text` without the zone behind an IPv6 address (RFC 4007, section 11), which has a meaning only
// on the proxy's host: "fe80::1%eth0" is fe80::1. If the zone has a character that no interface's
// name has, it is not removed, and the text is not an address.
std::string_view WithoutZone(std::string_view text) {
  const size_t mark = text.find('%');
  if (mark == text.npos || text.find(':') > mark) return text;
  const std::string_view zone = text.substr(mark + 1);
  const bool valid = !zone.empty() && std::all_of(zone.begin(), zone.end(), [](char c) {
    return base::IsLetterOrDigit(c) || c == '.' || c == '_' || c == '-' || c == '~' || c == '%';
  });
  return valid ? text.substr(0, mark) : text;
}

// The length of the quoted string at the start of `text`, with its quotes; 0 if it does not end.
size_t QuotedSize(std::string_view text) {
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') return i + 1;
    if (text[i] == '\\') ++i;
  }
  return 0;
}

}  // namespace

bool ForwardedChain::AddLine(Syntax syntax, std::string_view line) {
  if (syntax == Syntax::kForwarded) return AddForwarded(line);
  while (!line.empty()) {
    const std::string_view member = base::TakeListItem(line);
    // RFC 9110, 5.6.1.2: empty members do not count.
    if (!member.empty() && !Add(member)) return false;
  }
  return true;
}

bool ForwardedChain::Add(std::string_view member) {
  if (size_ == members_.size()) return false;
  members_[size_++] = member;
  return true;
}

// forwarded-element = [ forwarded-pair ] *( ";" [ forwarded-pair ] ), RFC 7239, section 4.
bool ForwardedChain::AddForwarded(std::string_view line) {
  std::string_view member;  // the value of `for`
  bool has_for = false;
  bool has_pair = false;
  while (true) {
    line = base::Trimmed(line);
    const size_t name_end = std::min(line.find_first_of("=;, \t\""), line.size());
    const std::string_view name = line.substr(0, name_end);
    if (!name.empty()) {
      line.remove_prefix(name_end);
      if (!line.starts_with('=')) return false;
      line.remove_prefix(1);
      std::string_view value;
      if (line.starts_with('"')) {
        const size_t size = QuotedSize(line);
        if (size == 0) return false;
        value = line.substr(1, size - 2);
        line.remove_prefix(size);
      } else {
        value = line.substr(0, line.find_first_of(";, \t\""));
        line.remove_prefix(value.size());
        if (value.empty()) return false;
      }
      has_pair = true;
      if (base::EqualsIgnoreCase(name, "for")) {
        if (has_for) return false;  // RFC 7239, section 4: each parameter at most once
        has_for = true;
        member = value;
      }
      line = base::Trimmed(line);
    }
    const bool ends = line.empty() || line.front() == ',';
    if (ends) {
      if (has_pair && !Add(member)) return false;
      member = {};
      has_for = has_pair = false;
      if (line.empty()) return true;
    } else if (line.front() != ';') {
      return false;
    }
    line.remove_prefix(1);
  }
}

std::optional<base::IpAddress> ForwardedChain::Address(size_t index) const {
  return ParseForwardedAddress(members_[index]);
}

std::optional<base::IpAddress> ParseForwardedAddress(std::string_view text) {
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == text.npos) return std::nullopt;
    const std::string_view behind = text.substr(close + 1);
    if (!behind.empty() && (behind.front() != ':' || !IsPort(behind.substr(1)))) {
      return std::nullopt;
    }
    const std::string_view address = text.substr(1, close - 1);
    return address.find(':') == address.npos ? std::nullopt
                                             : base::ParseIpAddress(WithoutZone(address));
  }
  const size_t colon = text.find(':');
  const bool has_port = colon != text.npos && text.find(':', colon + 1) == text.npos;
  if (!has_port) return base::ParseIpAddress(WithoutZone(text));
  return IsPort(text.substr(colon + 1)) ? base::ParseIpAddress(text.substr(0, colon))
                                        : std::nullopt;
}

}  // namespace headgate::wire
