// A restart without a failed request: a new process takes the listening sockets of the old one, so
// no connection that waits on them is lost.
//
//   new: connects to the Unix socket of the old one ──▶ old: sends each address with its sockets
//   new: listens on them, puts its own Unix socket in place ──▶ "ready"
//   old: passes on its state, stops accepting, answers what has begun, leaves
//
// Each side checks that the other one runs as the same user. If the new process ends before it is
// ready, the old one goes on as before. handover_messages.h has what the messages say. The state is
// a file in memory, because it may be larger than a message.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/app/handover_messages.h"
#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/net/endpoint.h"
#include "headgate/net/event_loop.h"
#include "headgate/net/file_descriptor.h"
#include "headgate/net/readable.h"

namespace headgate::app {

// The old process, as the new one sees it.
class Predecessor {
 public:
  struct Address {
    std::string name;
    net::Endpoint bound;
    std::vector<net::FileDescriptor> sockets;
  };

  // Gets all addresses of the process at this path. Blocks for at most `timeout`. Nothing if there
  // is no process.
  static absl::StatusOr<std::optional<Predecessor>> Find(const std::string& path,
                                                         base::Duration timeout);
  // The first address with this name, which is then not there any more.
  std::optional<Address> Take(std::string_view name);
  // Makes the old process leave. Returns its state, or why there is none. Blocks as Find does.
  absl::StatusOr<SidecarState> SayReady();

 private:
  explicit Predecessor(net::FileDescriptor connection) : connection_(std::move(connection)) {}
  absl::Status ReceiveAddresses();

  net::FileDescriptor connection_;
  std::vector<Address> addresses_;
};

// The place at which a process waits for its successor.
class HandoverPoint {
 public:
  struct Address {
    std::string name;
    net::Endpoint bound;
    std::vector<int> sockets;  // stay open while the point exists
  };

  // Called on the thread of the loop, once, when the successor is ready.
  struct Calls {
    std::function<SidecarState()> state;
    std::function<void()> leave;
  };

  // Replaces what is at the path.
  static absl::StatusOr<std::unique_ptr<HandoverPoint>> Open(const std::string& path,
                                                             std::vector<Address> addresses,
                                                             net::EventLoop& loop, Calls calls);
  // Removes the file, unless it is the successor's.
  ~HandoverPoint();
  HandoverPoint(const HandoverPoint&) = delete;

 private:
  HandoverPoint(std::string path, std::vector<Address> addresses, net::EventLoop& loop,
                net::FileDescriptor listener, Calls calls);
  void OnConnection();
  void OnWord();
  bool SendAddresses() const;
  void SendState() const;

  const std::string path_;
  const uint64_t file_;  // its number
  const std::vector<Address> addresses_;
  net::EventLoop& loop_;
  const Calls calls_;
  const net::FileDescriptor listener_;
  net::FileDescriptor successor_;
  std::optional<net::Readable> word_;  // of the successor
  net::Readable connections_;
};

}  // namespace headgate::app
