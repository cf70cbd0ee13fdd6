#include "headgate/watch/zookeeper/node_reader.h"

#include <algorithm>
#include <utility>

namespace headgate::watch::zookeeper {

using client::zookeeper::Client;
using client::zookeeper::Node;
using client::zookeeper::NodeStat;
using client::zookeeper::Watch;

NodeReader::NodeReader(Client& first, client::zookeeper::ClientOptions options,
                       size_t watched_bytes_max, net::EventLoop& loop, Callbacks callbacks)
    : options_(std::move(options)),
      watched_bytes_max_(watched_bytes_max),
      loop_(loop),
      callbacks_(std::move(callbacks)) {
  sessions_.push_back({.client = &first});
}

void NodeReader::Read(const std::string& path) {
  queue_.push_back(path);
  Pump();
}

void NodeReader::Forget(const std::string& path) {
  const auto found = session_of_.find(path);
  if (found == session_of_.end()) return;
  sessions_[found->second].watched_bytes -= path.size();
  session_of_.erase(found);
}

NodeReader::Session& NodeReader::SessionOf(const std::string& path) {
  const auto [found, added] = session_of_.try_emplace(path, 0);
  if (added) {
    while (found->second < sessions_.size() &&
           sessions_[found->second].watched_bytes + path.size() > watched_bytes_max_)
      ++found->second;
    if (found->second == sessions_.size()) Open();
    sessions_[found->second].watched_bytes += path.size();
  }
  return sessions_[found->second];
}

void NodeReader::Open() {
  const size_t session = sessions_.size();
  auto client = std::make_unique<Client>(
      options_, loop_,
      Client::Listener{
          .on_connected = [this, session](bool /*new_session*/) { OnConnected(session); },
          .on_disconnected = [this, session] { OnDisconnected(session); },
          .on_watch = callbacks_.on_watch,
          .on_trouble = nullptr});
  Client* const opened = client.get();
  sessions_.push_back({.client = opened, .own = std::move(client)});
}

void NodeReader::OnConnected(size_t session) {
  std::vector<std::string> paths;
  for (const auto& [path, own] : session_of_)
    if (own == session) paths.push_back(path);
  for (const std::string& path : paths) callbacks_.on_doubt(path);
  callbacks_.on_back();
}

void NodeReader::OnDisconnected(size_t session) {
  callbacks_.on_lost(sessions_[session].client->heard_at());
}

void NodeReader::Look(const std::string& path, Client::Done<NodeStat> done) {
  SessionOf(path).client->Exists(path, Watch::kNo, std::move(done));
}

void NodeReader::Knock(const std::string& path, const std::function<void()>& done) {
  for (const Session& session : sessions_)
    session.client->Exists(path, Watch::kNo, [done](const absl::StatusOr<NodeStat>&) { done(); });
}

base::BootTime NodeReader::heard_at() const {
  base::BootTime first = sessions_[0].client->heard_at();
  for (const Session& session : sessions_) first = std::min(first, session.client->heard_at());
  return first;
}

bool NodeReader::connected() const {
  return std::all_of(sessions_.begin(), sessions_.end(),
                     [](const Session& session) { return session.client->connected(); });
}

void NodeReader::Pump() {
  // A call that ends at once would come back here.
  if (std::exchange(pumping_, true)) return;
  while (in_flight_ < kReadsAtOnce && !queue_.empty()) {
    const std::string path = std::move(queue_.front());
    queue_.pop_front();
    const Session& session = SessionOf(path);
    // The node will be reported as doubtful when its session is connected.
    if (session.own != nullptr && !session.client->connected()) continue;
    ++in_flight_;
    session.client->Get(path, Watch::kYes, [this, path](absl::StatusOr<Node> node) {
      --in_flight_;
      callbacks_.on_node(path, std::move(node));
      Pump();
    });
  }
  pumping_ = false;
}

}  // namespace headgate::watch::zookeeper
