// A restart without a failed request: a new process takes the listening sockets of the old one, so
// no connection that waits on them is lost.
//
//   new: connects to the Unix socket of the old one, "hello" ──▶ old: sends each address with its
//   sockets
//   new: listens on them, puts its own Unix socket in place, "ready" ──▶ old: passes on its state,
//   stops accepting, answers what has begun, leaves
//
// Each side checks that the other one runs as the same user. If the new process ends before it is
// ready, the old one continues to serve. A process that connects and says nothing does not delay
// others. A process that has said hello may take over within a bounded time, and others are told to
// wait for it. messages.h has the text of the messages. The state is a file in memory, because it
// may be larger than a message.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/handover/messages.h"
#include "headgate/net/endpoint.h"
#include "headgate/net/event_loop.h"
#include "headgate/net/file_descriptor.h"
#include "headgate/net/readable.h"
#include "headgate/net/unix_listener.h"
#include "headgate/observe/log.h"

namespace headgate::handover {

// The longest path of the socket. ".new" is appended to it for a moment, and must fit too.
inline constexpr size_t kPathBytesMax = 103;

// The old process, as the new one sees it.
class Predecessor {
 public:
  struct Address {
    std::string name;
    net::Endpoint bound;
    std::vector<net::FileDescriptor> sockets;
  };

  // Gets all addresses of the process at this path. Blocks for at most `timeout`. Nothing if there
  // is no process. AlreadyExists if something else is at the path, PermissionDenied if it belongs
  // to another user, Aborted if another process is taking over.
  static absl::StatusOr<std::optional<Predecessor>> Find(const std::string& path,
                                                         base::Duration timeout);
  // Removes and returns the first address with this name.
  std::optional<Address> Take(std::string_view name);
  // DeadlineExceeded if the old process does not wait for this one any more.
  absl::Status StillWaits() const;
  const net::SocketFile& file() const { return file_; }
  // Makes the old process leave. Returns its state, or why there is none. Blocks as Find does.
  absl::StatusOr<SidecarState> SayReady();

 private:
  Predecessor(net::SocketFile file, net::FileDescriptor connection)
      : file_(std::move(file)), connection_(std::move(connection)) {}
  absl::Status ReceiveAddresses();

  net::SocketFile file_;  // the socket file at the path, as it was before the connection
  net::FileDescriptor connection_;
  std::vector<Address> addresses_;
};

// The place at which a process waits for its successor.
class HandoverPoint {
 public:
  struct Options {
    std::string path;
    // The socket file of the old process, which is replaced if it is still at the path.
    std::optional<net::SocketFile> before{};
    // A process that connects has to say hello within this time.
    base::Duration hello_timeout = std::chrono::seconds(1);
    // The longest time from hello to ready. This is plenty: a successor reads its rules before
    // hello, and waits for its store for a third of this time.
    base::Duration ready_timeout = std::chrono::seconds(15);
  };

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

  // Replaces a socket that a process of this user has left behind, too. Anything else at the path
  // stays and is an error. `loop` and `log` must outlive the point.
  static absl::StatusOr<std::unique_ptr<HandoverPoint>> Open(const Options& options,
                                                             std::vector<Address> addresses,
                                                             net::EventLoop& loop,
                                                             observe::Log& log, Calls calls);
  // Removes the file, unless it is the successor's.
  ~HandoverPoint();
  HandoverPoint(const HandoverPoint&) = delete;

 private:
  class Peer;

  HandoverPoint(const Options& options, std::vector<Address> addresses, net::EventLoop& loop,
                observe::Log& log, net::FileDescriptor listener, Calls calls);
  void OnConnection();
  void OnWord(Peer& peer);
  void OnHello(Peer& peer);
  void OnSilence(Peer& peer);
  // Destroys it.
  void Drop(const Peer& peer);
  void DropSilent(const Peer& peer, base::Duration after);
  bool SendAddresses(const Peer& peer) const;
  void SendState(const Peer& peer) const;

  const net::SocketFile file_;
  const base::Duration hello_timeout_;
  const base::Duration ready_timeout_;
  const std::vector<Address> addresses_;
  net::EventLoop& loop_;
  observe::Log& log_;
  const Calls calls_;
  const net::FileDescriptor listener_;
  std::vector<std::unique_ptr<Peer>> peers_;  // in the order in which they came, at most kPeersMax
  const Peer* successor_ = nullptr;           // the one that has said hello
  net::Readable connections_;
};

}  // namespace headgate::handover
