// Resolves a host name on a thread of its own, because getaddrinfo(3) blocks until the name servers
// answer or time out. It honours the machine's hosts file, name servers and nsswitch.conf.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/net/event_loop.h"
#include "headgate/net/socket_address.h"

namespace headgate::net {

// In the order in which they should be tried.
using SocketAddresses = std::vector<SocketAddress>;

// The address that `host` is. Empty if it is a name. Does not block.
SocketAddresses AddressIn(const std::string& host, uint16_t port);

struct NameWaiter;

class NameLookup {
 public:
  // Called once, on the loop's thread and never from within the constructor, with at least one
  // address. May destroy the lookup.
  using Done = std::function<void(const absl::StatusOr<SocketAddresses>& addresses)>;

  // In the whole process a name is looked up by one thread at a time: lookups that begin meanwhile
  // get the same answer. So name servers that do not answer hold as many threads as there are
  // names. An answer that took more than 10 ms, or that nobody awaits any more, is kept for 5 s.
  NameLookup(EventLoop& loop, const std::string& host, uint16_t port, Done done);
  ~NameLookup();  // afterwards `done` is not called
  NameLookup(const NameLookup&) = delete;

 private:
  const std::shared_ptr<NameWaiter> waiter_;
};

}  // namespace headgate::net
