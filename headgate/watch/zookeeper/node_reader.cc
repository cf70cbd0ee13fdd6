#include "headgate/watch/zookeeper/node_reader.h"

#include <utility>

namespace headgate::watch::zookeeper {

using headgate::zookeeper::Client;
using headgate::zookeeper::Node;

NodeReader::NodeReader(Client& first, headgate::zookeeper::ClientOptions options,
                       net::EventLoop& loop, Callbacks callbacks)
    : first_(first), options_(std::move(options)), loop_(loop), callbacks_(std::move(callbacks)) {}

void NodeReader::Read(const std::string& path) {
  queue_.push_back(path);
  Pump();
}

void NodeReader::Forget(const std::string& path) {
  const auto found = session_of_.find(path);
  if (found == session_of_.end()) return;
  (found->second == 0 ? first_bytes_ : others_[found->second - 1].watched_bytes) -= path.size();
  session_of_.erase(found);
}

Client& NodeReader::ClientOf(const std::string& path) {
  const auto [found, added] = session_of_.try_emplace(path, 0);
  if (added && first_bytes_ + path.size() <= kWatchedBytesMax) {
    first_bytes_ += path.size();
  } else if (added) {
    size_t index = 0;
    while (index < others_.size() && others_[index].watched_bytes + path.size() > kWatchedBytesMax)
      ++index;
    if (index == others_.size()) Open();
    others_[index].watched_bytes += path.size();
    found->second = index + 1;
  }
  return found->second == 0 ? first_ : *others_[found->second - 1].client;
}

void NodeReader::Open() {
  const size_t session = others_.size() + 1;
  others_.emplace_back().client = std::make_unique<Client>(
      options_, loop_,
      Client::Listener{
          .on_connected = [this, session](bool /*new_session*/) { OnConnected(session); },
          .on_disconnected = nullptr,
          .on_watch = callbacks_.on_watch,
          .on_trouble = nullptr});
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
    Client& client = ClientOf(path);
    // It will be in doubt when its session is there.
    if (&client != &first_ && !client.connected()) continue;
    ++in_flight_;
    client.Get(path, headgate::zookeeper::Watch::kYes, [this, path](absl::StatusOr<Node> node) {
      --in_flight_;
      callbacks_.on_node(path, std::move(node));
      Pump();
    });
  }
  pumping_ = false;
}

}  // namespace headgate::watch::zookeeper
