// A server of HTTP, as the beginning of a URL.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headgate/base/status.h"

namespace headgate::client::http {

struct Origin {
  bool tls = false;
  std::string host{};  // a name, or an address without brackets
  uint16_t port = 0;

  bool operator==(const Origin&) const = default;
  // "HOST:PORT", without the port if it is the scheme's own: the value of a Host field.
  std::string Authority() const;
  // "https://HOST:PORT", likewise.
  std::string ToString() const;
};

// Reads "http://HOST[:PORT]" or "https://HOST[:PORT]", with or without a '/' at the end.
// InvalidArgument if there is anything else: a user, a path, a query. The message does not repeat
// the text, because it may contain a password.
absl::StatusOr<Origin> ParseOrigin(std::string_view text);

}  // namespace headgate::client::http
