// One session with a ZooKeeper ensemble, as calls and callbacks of an event loop.
//
// The official C client has threads of its own; this class is the one place where what they say
// comes to the loop. A session that has expired is replaced by a new one, and so is one whose
// connection is away for a third longer than its timeout. Host names are resolved anew for each
// session, never on a thread of the C client, which would miss its heartbeats meanwhile. The C
// client of Debian 12 has no TLS.
//
// What follows is for the loop's thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/net/connector.h"
#include "headgate/net/event_loop.h"

namespace headgate::zookeeper {

// With its path, a node must fit into a request of jute.maxbuffer (1 MiB); a larger request makes
// the server close the connection, and all calls on it fail.
inline constexpr size_t kRequestBytesMax = 1'048'500;

struct ClientOptions {
  std::vector<net::StreamTarget> servers;  // at least one, none of them a Unix socket
  // Asked for; the ensemble grants 2 to 20 of its ticks.
  base::Duration session_timeout = std::chrono::seconds(10);
  // A call that has no answer after this time ends as one whose outcome is not known.
  base::Duration call_timeout = std::chrono::seconds(5);
  // "user:password" for ZooKeeper's `digest` scheme, or empty. With it, nodes are made such that
  // only this user may use them.
  std::string digest{};
};

// Set by ZooKeeper. Transaction ids (zxid) rise with every change of the ensemble.
struct NodeStat {
  int64_t created_zxid = 0;
  int64_t changed_zxid = 0;     // the node's data
  int64_t children_zxid = 0;    // its list of children
  int32_t version = 0;          // of its data; 0 when the node is made
  int64_t owner = 0;            // the session of an ephemeral node, otherwise 0
  base::WallTime changed_at{};  // on the leader's clock, in whole milliseconds
};

struct Node {
  std::string data;
  NodeStat stat;
};

struct Children {
  std::vector<std::string> names;  // in no order
  NodeStat stat;
};

struct Created {
  std::string path;  // with the number of a sequential node
  NodeStat stat;
};

enum class Watch : bool { kNo, kYes };
// A container is removed by the ensemble, within some minutes, after its last child has gone
// (ZooKeeper 3.5.3).
enum class CreateMode : uint8_t { kPersistent, kEphemeral, kEphemeralSequential, kContainer };

// A watch has fired, and is gone. Watches may be lost, and several changes may fire one.
struct WatchEvent {
  enum class Kind : uint8_t { kCreated, kDeleted, kDataChanged, kChildrenChanged };
  Kind kind;
  std::string path;
};

class Client {
 public:
  // Callbacks of a client. They may call it, but not destroy it.
  struct Listener {
    // There is a connection. `new_session`: ephemeral nodes and watches of an earlier session are
    // gone or will go. Otherwise the session goes on, and what changed meanwhile fires watches.
    std::function<void(bool new_session)> on_connected;
    // There is none any more; the session may go on.
    std::function<void()> on_disconnected;
    std::function<void(const WatchEvent& event)> on_watch;
    // The ensemble refuses the user and password, or no server's name is known. It tries again.
    std::function<void(const absl::Status& why)> on_trouble;
  };

  // Connects at once, and until it is destroyed. `loop` must outlive it.
  Client(ClientOptions options, net::EventLoop& loop, Listener listener);
  // Ends the session, so that its ephemeral nodes go. Waits up to 2 s for servers that do not
  // answer, so destroy it after the loop has ended, or Leave first.
  ~Client();
  Client(const Client&) = delete;

  // Each calls `done` exactly once, possibly before it returns, with one of these statuses:
  //   NotFound, AlreadyExists, PermissionDenied; Aborted: the node has another version;
  //   FailedPrecondition: the node has children, or is ephemeral and must not have any;
  //   Unimplemented: the servers are too old for it;
  //   ResourceExhausted: not done, because the server has too much to do;
  //   InvalidArgument: a path or data that ZooKeeper does not take; not sent;
  //   Unavailable: not sent, or a read without an answer;
  //   Unknown: a change without an answer, which may have been made.
  template <typename Value>
  using Done = std::function<void(absl::StatusOr<Value>)>;
  void Get(const std::string& path, Watch watch, Done<Node> done);
  void Exists(const std::string& path, Watch watch, Done<NodeStat> done);
  void List(const std::string& path, Watch watch, Done<Children> done);
  void Create(const std::string& path, std::string_view data, CreateMode mode, Done<Created> done);
  // Any version if `version` is −1.
  void Set(const std::string& path, std::string_view data, int32_t version, Done<NodeStat> done);
  void Delete(const std::string& path, int32_t version, std::function<void(absl::Status)> done);

  // Deletes the node and makes it again with this data, both or neither, so that its versions begin
  // again at 0. Watches see both.
  void Replace(const std::string& path, std::string_view data, int32_t version,
               std::function<void(absl::Status)> done);

  // Brings the server of this session up to date: reads that are sent behind a Sync see all changes
  // that were answered before it, to any client. The leader answers without asking the others, so
  // one that has lost its followers and does not know it yet can still be behind.
  void Sync(const std::string& path, std::function<void(absl::Status)> done);

  // Makes the node and all nodes above it, without data, where they are missing.
  void CreateAll(const std::string& path, std::function<void(absl::Status)> done);

  // Ends the session, then calls `done`, at the latest after some seconds. Nothing else may be
  // called afterwards.
  void Leave(std::function<void()> done);

  bool connected() const;
  // The id of the current session; 0 without a connection.
  int64_t session_id() const;

 private:
  class Core;
  const std::shared_ptr<Core> core_;
};

}  // namespace headgate::zookeeper
