#include "headgate/watch/zookeeper/directory.h"

#include <algorithm>
#include <utility>

namespace headgate::watch::zookeeper {

Directory::Wanted Directory::TakeWanted() {
  Wanted wanted = std::exchange(wanted_, {});
  if (wanted.list) listed_ = false;
  reads_ += wanted.nodes.size() + (wanted.list ? 1 : 0);
  return wanted;
}

void Directory::Remember(NodeTexts nodes, int64_t list_zxid, int64_t created_zxid) {
  nodes_ = std::move(nodes);
  list_zxid_ = list_zxid;
  created_zxid_ = created_zxid;
}

void Directory::OnConnected() {
  if (std::exchange(stale_, false)) ++stale_rounds_;
  listed_ = false;
  wanted_.list = true;
  for (const auto& [name, node] : nodes_) OnNodeChanged(name);
}

void Directory::OnNodeChanged(std::string_view name) {
  if (nodes_.contains(name) || unread_.contains(name)) Want(std::string(name));
}

void Directory::Want(const std::string& name) {
  wanted_.nodes.insert(name);
  unread_.insert(name);
}

bool Directory::OnListCompared(int64_t list_zxid) {
  const bool known = list_zxid == 0 ? missing_ : list_zxid <= list_zxid_ && !missing_;
  if (known || !listed_ || wanted_.list) return false;
  wanted_.list = true;
  return true;
}

bool Directory::OnNodeCompared(const std::string& name, int64_t zxid) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end() || unread_.contains(name)) return false;
  if (zxid != 0 && zxid <= found->second.zxid) return false;
  // Its deletion is known once a list says so.
  if (zxid == 0 && (!listed_ || wanted_.list)) return false;
  Want(name);
  return true;
}

bool Directory::IsStale(int64_t zxid, int64_t known) {
  const bool stale = zxid < known;
  stale_ = stale_ || stale;
  return stale;
}

void Directory::AfterAnswer() {
  if (complete()) stale_rounds_ = 0;
}

void Directory::OnListed(const std::vector<std::string>& names, int64_t zxid,
                         int64_t created_zxid) {
  missing_ = false;
  if (IsStale(zxid, list_zxid_)) return;
  listed_ = true;
  list_zxid_ = zxid;
  created_zxid_ = created_zxid;
  const std::set<std::string_view> listed(names.begin(), names.end());
  const auto is_gone = [&](const std::string& name) { return !listed.contains(name); };
  std::erase_if(nodes_, [&](const auto& node) { return is_gone(node.first); });
  std::erase_if(unread_, is_gone);
  std::erase_if(wanted_.nodes, is_gone);
  for (const std::string& name : names) {
    if (nodes_.contains(name) || !unread_.insert(name).second) continue;
    wanted_.nodes.insert(name);
  }
  AfterAnswer();
}

void Directory::OnMissing() {
  missing_ = true;
  listed_ = true;
  list_zxid_ = 0;
  nodes_.clear();
  unread_.clear();
  wanted_.nodes.clear();
}

void Directory::OnRead(const std::string& name, NodeText node) {
  NodeText& known = nodes_[name];
  if (IsStale(node.zxid, known.zxid)) return;
  known = std::move(node);
  if (!wanted_.nodes.contains(name)) unread_.erase(name);
  AfterAnswer();
}

void Directory::OnGone(const std::string& name) {
  unread_.erase(name);
  wanted_.nodes.erase(name);
  if (nodes_.contains(name)) wanted_.list = true;
}

void Directory::Forget() {
  list_zxid_ = 0;
  for (auto& [name, node] : nodes_) node.zxid = 0;
  stale_ = false;
  stale_rounds_ = 0;
  OnConnected();
}

}  // namespace headgate::watch::zookeeper
