// One session with a ZooKeeper ensemble, as calls and callbacks of an event loop.
//
// The official C client has threads of its own; only this class brings their callbacks to the loop.
// A session that has expired is replaced by a new one, and so is a session whose connection is lost
// for a third longer than its timeout. Host names are resolved again for each session, never on a
// thread of the C client, which would miss its heartbeats meanwhile. The C client of Debian 12 has
// no TLS.
//
// All functions are for the loop's thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/base/secret.h"
#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/net/connector.h"
#include "headgate/net/event_loop.h"

namespace headgate::client::zookeeper {

// With its path, a node must fit into a request of jute.maxbuffer (1 MiB); a larger request makes
// the server close the connection, and all calls on it fail.
inline constexpr size_t kRequestBytesMax = 1'048'500;

struct ClientOptions {
  std::vector<net::StreamTarget> servers;  // at least one, none of them a Unix socket
  // The requested timeout; the ensemble grants 2 to 20 of its ticks.
  base::Duration session_timeout = std::chrono::seconds(10);
  // A call without an answer after this time ends with an unknown outcome.
  base::Duration call_timeout = std::chrono::seconds(5);
  // "user:password" for ZooKeeper's `digest` scheme, or empty; read for each session. With it, new
  // nodes may be used only by this user.
  base::Secret digest{};
};

// Set by ZooKeeper. Transaction ids (zxid) rise with every change of the ensemble.
struct NodeStat {
  int64_t created_zxid = 0;
  int64_t changed_zxid = 0;     // the node's data
  int64_t children_zxid = 0;    // its list of children
  int32_t version = 0;          // of its data; 0 when the node is created
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
    // gone or will go. Otherwise the session continues, and changes made meanwhile fire watches.
    std::function<void(bool new_session)> on_connected;
    // The connection has ended. The session may continue over another one.
    std::function<void()> on_disconnected;
    std::function<void(const WatchEvent& event)> on_watch;
    // The ensemble refuses the user and password, or no server's name is known. It tries again.
    std::function<void(const absl::Status& why)> on_trouble;
  };

  // Connects at once, and reconnects until it is destroyed. `loop` must outlive it.
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

  // Deletes the node and creates it again with this data, both or neither, so that its versions
  // begin again at 0. Watches fire for both.
  void Replace(const std::string& path, std::string_view data, int32_t version,
               std::function<void(absl::Status)> done);

  // Brings the server of this session up to date: reads that are sent behind a Sync see all changes
  // that were answered before it, to any client. The leader answers without asking the others, so a
  // leader that has lost its followers and does not know it yet can still be behind.
  void Sync(const std::string& path, std::function<void(absl::Status)> done);

  // Creates the node and all nodes above it, without data, as far as they are missing.
  void CreateAll(const std::string& path, std::function<void(absl::Status)> done);

  // Ends the session, then calls `done`, at the latest after some seconds. Nothing else may be
  // called afterwards.
  void Leave(std::function<void()> done);

  bool connected() const;
  // The id of the current session; 0 without a connection.
  int64_t session_id() const;
  // When a server was last heard: by an answer to a call, a watch, or a new connection. Before
  // that, the time when the client was created. Heartbeats of the C client do not count.
  base::BootTime heard_at() const;

 private:
  class Core;
  const std::shared_ptr<Core> core_;
};

}  // namespace headgate::client::zookeeper
