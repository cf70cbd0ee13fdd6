// A restart without a failed request: a new process takes the listening sockets of the old one, so
// no connection that waits on them is lost.
//
//   new: connects to the Unix socket of the old one ──▶ old: sends each address with its sockets
//   new: listens on them, puts its own Unix socket in place ──▶ "ready"
//   old: stops accepting, answers what has begun, leaves
//
// Each side checks that the other one runs as the same user. If the new process ends before it is
// ready, the old one goes on as before. Only sockets are handed over: the new process begins with
// the settings of its own flags, and with even shares.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
    std::string name;  // what it is for, and as its flag has it: "listen 127.0.0.1:0"
    net::Endpoint bound;
    std::vector<net::FileDescriptor> sockets;
  };

  // Gets all addresses of the process at this path. Blocks for at most `timeout`. Nothing if there
  // is no process.
  static absl::StatusOr<std::optional<Predecessor>> Find(const std::string& path,
                                                         base::Duration timeout);
  // The first address with this name, which is then not there any more.
  std::optional<Address> Take(std::string_view name);
  // Makes the old process leave.
  absl::Status SayReady();

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

  // Replaces what is at the path. `leave` is called on the thread of `loop`, once.
  static absl::StatusOr<std::unique_ptr<HandoverPoint>> Open(const std::string& path,
                                                             std::vector<Address> addresses,
                                                             net::EventLoop& loop,
                                                             std::function<void()> leave);
  // Removes the file, unless it is the successor's.
  ~HandoverPoint();
  HandoverPoint(const HandoverPoint&) = delete;

 private:
  HandoverPoint(std::string path, std::vector<Address> addresses, net::EventLoop& loop,
                net::FileDescriptor listener, std::function<void()> leave);
  void OnConnection();
  void OnWord();
  bool SendAddresses() const;

  const std::string path_;
  const uint64_t file_;  // its number
  const std::vector<Address> addresses_;
  net::EventLoop& loop_;
  const std::function<void()> leave_;
  const net::FileDescriptor listener_;
  net::FileDescriptor successor_;
  std::optional<net::Readable> word_;  // of the successor
  net::Readable connections_;
};

}  // namespace headgate::app
