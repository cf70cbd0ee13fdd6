#include "headgate/watch/zookeeper/node_reader.h"

#include <utility>

namespace headgate::watch::zookeeper {

using headgate::zookeeper::Client;
using headgate::zookeeper::Node;

NodeReader::NodeReader(Client& first, headgate::zookeeper::ClientOptions options,
                       net::EventLoop& loop, Callbacks callbacks)
    : options_(std::move(options)), loop_(loop), callbacks_(std::move(callbacks)) {
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
           sessions_[found->second].watched_bytes + path.size() > kWatchedBytesMax)
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
          .on_disconnected = nullptr,
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
}

void NodeReader::Pump() {
  // A call that ends at once would come back here.
  if (std::exchange(pumping_, true)) return;
  while (in_flight_ < kReadsAtOnce && !queue_.empty()) {
    const std::string path = std::move(queue_.front());
    queue_.pop_front();
    const Session& session = SessionOf(path);
    // It will be in doubt when its session is there.
    if (session.own != nullptr && !session.client->connected()) continue;
    ++in_flight_;
    session.client->Get(path, headgate::zookeeper::Watch::kYes,
                        [this, path](absl::StatusOr<Node> node) {
                          --in_flight_;
                          callbacks_.on_node(path, std::move(node));
                          Pump();
                        });
  }
  pumping_ = false;
}

}  // namespace headgate::watch::zookeeper
