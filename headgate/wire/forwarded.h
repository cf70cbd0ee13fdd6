// The chain of addresses in X-Forwarded-For and Forwarded (RFC 7239). Each proxy appends the
// address of the peer that it received the request from, so the last member is the most
// trustworthy. This file reads the members; mapping/client_address.h decides which to believe.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "headgate/base/ip_address.h"

namespace headgate::wire {

// A longer chain is refused. Each member costs a proxy a hop, so no honest chain is this long.
inline constexpr size_t kForwardedMembersMax = 64;

// The members in their order, over all lines of a field.
class ForwardedChain {
 public:
  enum class Syntax : uint8_t { kXForwardedFor, kForwarded };

  // Adds the members of one line. False if the line cannot be split into members, or if there are
  // too many; then the chain must not be used. The chain keeps views of the line.
  bool AddLine(Syntax syntax, std::string_view line);

  size_t size() const { return size_; }
  // The address that a member names. Empty if it names none: "unknown", "_hidden", or rubbish.
  std::optional<base::IpAddress> Address(size_t index) const;

 private:
  bool Add(std::string_view member);
  bool AddForwarded(std::string_view line);

  // The text of each member: of Forwarded, the value of `for`, without quotes. Empty if it has
  // none.
  std::array<std::string_view, kForwardedMembersMax> members_;
  size_t size_ = 0;
};

// "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]" or "[2001:db8::1]:80". The port is
// ignored; RFC 7239 also allows a hidden one ("_x").
std::optional<base::IpAddress> ParseForwardedAddress(std::string_view text);

}  // namespace headgate::wire
