// Reads many nodes, each with a watch.
//
// When a session comes back, the C client sends the paths of all its watches in one packet, and a
// server takes at most 1 MiB. So the watches are spread over several sessions, each with at most
// `watched_bytes_max` of paths.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "headgate/client/zookeeper/client.h"
#include "headgate/net/event_loop.h"

namespace headgate::watch::zookeeper {

class NodeReader {
 public:
  static constexpr size_t kWatchedBytesMax = 400'000;
  static constexpr size_t kReadsAtOnce = 500;

  struct Callbacks {
    // The answer to a Read. Called once for each.
    std::function<void(const std::string& path, absl::StatusOr<client::zookeeper::Node> node)>
        on_node;
    std::function<void(const client::zookeeper::WatchEvent& event)> on_watch;
    // This node may have changed while its watch was away.
    std::function<void(const std::string& path)> on_doubt;
    // A session other than the first has lost its connection; it last heard from a server at
    // `heard_at`.
    std::function<void(base::BootTime heard_at)> on_lost;
    // The session has a connection again. Called once, after on_doubt for all its nodes.
    std::function<void()> on_back;
  };

  // `first` is the first session; it reports its watches and connections itself. Both must outlive
  // the reader. Further sessions use the same options, and are opened when needed.
  NodeReader(client::zookeeper::Client& first, client::zookeeper::ClientOptions options,
             size_t watched_bytes_max, net::EventLoop& loop, Callbacks callbacks);

  void Read(const std::string& path);
  // Reads the node over the session that watches it, without a new watch. The answer comes after
  // the watches of all changes that it shows.
  void Look(const std::string& path,
            client::zookeeper::Client::Done<client::zookeeper::NodeStat> done);
  // The node is gone, and its watch too.
  void Forget(const std::string& path);

  // Makes each session ask for this node. Calls `done` after each answer.
  void Knock(const std::string& path, const std::function<void()>& done);
  // When the session with the longest silence last heard from its server.
  base::BootTime heard_at() const;
  bool connected() const;

  size_t sessions() const { return sessions_.size(); }

 private:
  struct Session {
    client::zookeeper::Client* client = nullptr;
    std::unique_ptr<client::zookeeper::Client> own{};  // all but the first
    size_t watched_bytes = 0;
  };

  Session& SessionOf(const std::string& path);
  void Open();
  void OnConnected(size_t session);
  void OnDisconnected(size_t session);
  void Pump();

  const client::zookeeper::ClientOptions options_;
  const size_t watched_bytes_max_;
  net::EventLoop& loop_;
  const Callbacks callbacks_;
  std::vector<Session> sessions_;
  absl::flat_hash_map<std::string, size_t> session_of_;  // by path
  std::deque<std::string> queue_;
  size_t in_flight_ = 0;
  bool pumping_ = false;
};

}  // namespace headgate::watch::zookeeper
