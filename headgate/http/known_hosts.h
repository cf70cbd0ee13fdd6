// Which Host a request may name. A web page can make a browser resolve the page's own name to
// 127.0.0.1 and then talk to whatever listens there (DNS rebinding); but the browser still sends
// the page's name as Host. So names that nobody told us are ours are turned away. Addresses are no
// names: a page cannot rebind them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"

namespace headgate::http {

class KnownHosts {
 public:
  KnownHosts() = default;
  // Names without port, besides localhost and addresses, which are always known. "*.example.com"
  // knows every name below example.com, at any depth, but not example.com itself; "*" knows every
  // name.
  explicit KnownHosts(std::vector<std::string> names);

  // InvalidArgument if `name` could never match: a '*' at another place, a port, a scheme, or a
  // character that names do not have.
  static absl::Status Check(std::string_view name);

  // `host` is a Host field: name or address, with or without a port.
  bool Knows(std::string_view host) const;

 private:
  std::vector<std::string> names_;
  bool any_ = false;
};

}  // namespace headgate::http
