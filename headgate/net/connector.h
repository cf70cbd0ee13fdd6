// Opens a socket to an address. Resolves a name (name_lookup.h), and tries its addresses one
// after the other. Internal to net: other folders use Stream.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "headgate/base/status.h"
#include "headgate/net/endpoint.h"
#include "headgate/net/event_loop.h"
#include "headgate/net/file_descriptor.h"
#include "headgate/net/name_lookup.h"
#include "headgate/net/socket_address.h"

namespace headgate::net {

// The address to connect to.
struct StreamTarget {
  std::string host{};  // a name or an address; unused if unix_path is set
  uint16_t port = 0;
  std::string unix_path{};

  bool operator==(const StreamTarget&) const = default;
  std::string ToString() const;
};

// The target for a client of this listening address. The address of all interfaces becomes this
// machine.
StreamTarget TargetOf(const Endpoint& endpoint);

class Connector final : private SocketPoller::Socket {
 public:
  // Called once, on the loop's thread and never from within the constructor, with a connected,
  // non-blocking socket or the reason of the last failure. May destroy the connector.
  using Done = std::function<void(absl::StatusOr<FileDescriptor> socket)>;

  Connector(EventLoop& loop, const StreamTarget& target, Done done);
  ~Connector();  // afterwards `done` is not called
  Connector(const Connector&) = delete;

  // Whether it still waits for the addresses of a name.
  bool resolving() const { return lookup_ != nullptr && addresses_.empty(); }

 private:
  void OnEvents(uint32_t events) override;
  // If all addresses have failed, there is no socket.
  void TryNextAddress();
  bool BeginToConnect(const SocketAddress& address);
  void GiveUpSocket(int error);
  void Finish(absl::StatusOr<FileDescriptor> result);

  SocketPoller& poller_;
  Done done_;
  std::unique_ptr<NameLookup> lookup_;
  SocketAddresses addresses_;
  size_t next_address_ = 0;
  FileDescriptor socket_;  // that is connecting
  std::string error_;      // of the last address
};

}  // namespace headgate::net
