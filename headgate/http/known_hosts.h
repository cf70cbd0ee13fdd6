// The host names that a request may use in its Host field. A web page can make a browser resolve
// the page's own name to 127.0.0.1 and then connect to any server there (DNS rebinding). The
// browser still sends the page's name as Host, so names that were not configured are refused.
// Addresses are always allowed, because a page cannot rebind them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"

namespace headgate::http {

class KnownHosts {
 public:
  KnownHosts() = default;
  // Names without port, in addition to localhost and addresses, which are always known.
  // "*.example.com" matches every name below example.com, at any depth, but not example.com itself;
  // "*" matches every name.
  explicit KnownHosts(std::vector<std::string> names);

  // InvalidArgument if `name` could never match: it has a '*' elsewhere, a port, a scheme, or a
  // character that host names cannot have.
  static absl::Status Check(std::string_view name);

  // `host` is the value of a Host field: a name or address, with or without a port.
  bool Knows(std::string_view host) const;

 private:
  std::vector<std::string> names_;
  bool any_ = false;
};

}  // namespace headgate::http
