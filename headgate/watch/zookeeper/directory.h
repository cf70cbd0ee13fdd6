// The nodes of one directory of an ensemble, as far as they have been read. It gets ZooKeeper's
// answers, and says what to read next; it reads nothing itself.
//
// Nothing ever goes backwards: an answer that is older than the known state (by its zxid) comes
// from a server that lags behind, or from an ensemble that was restored. It is ignored, and
// everything has to be asked for again (OnConnected).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::watch::zookeeper {

struct NodeText {
  std::string text;
  int64_t zxid = 0;  // of the last change
  int32_t version = 0;
  bool operator==(const NodeText&) const = default;
};

using NodeTexts = std::map<std::string, NodeText, std::less<>>;  // by name

class Directory {
 public:
  // The list and the nodes to read now, with watches. Each is returned once, until it is wanted
  // again.
  struct Wanted {
    bool list = false;
    std::set<std::string, std::less<>> nodes{};
  };
  Wanted TakeWanted();

  // Starts from the nodes that were known earlier, for example before a restart.
  void Remember(NodeTexts nodes, int64_t list_zxid, int64_t created_zxid);

  // There is a connection: watches may have been lost, so everything is wanted.
  void OnConnected();
  // A watch of the directory, or of a node in it, has fired. A deleted node may exist again, so it
  // is read like a changed one.
  void OnListChanged() { wanted_.list = true; }
  void OnNodeChanged(std::string_view name);

  // A comparison with the ensemble. The zxid comes over the session that watches the directory, or
  // the node, after the watches of all changes up to this zxid. So a change that is neither known
  // nor being read has fired no watch: it is wanted now, and the result is true. Older zxids come
  // from a server that lags behind, and are ignored. 0: the node, or the directory, is not there.
  bool OnListCompared(int64_t list_zxid);
  bool OnNodeCompared(const std::string& name, int64_t zxid);

  // Answers. For a read that failed, say again what was wanted.
  void OnListed(const std::vector<std::string>& names, int64_t zxid, int64_t created_zxid);
  // The directory itself does not exist.
  void OnMissing();
  void OnRead(const std::string& name, NodeText node);
  // The node does not exist any more. If it was known, it counts as deleted once a list lacks it
  // too.
  void OnGone(const std::string& name);
  // The node may not be read. Its last known text stays; say Want to try again.
  void OnUnreadable(const std::string& name) { unread_.erase(name); }
  void Want(const std::string& name);

  // Whether everything has been read since the last connection.
  bool complete() const { return listed_ && !wanted_.list && unread_.empty(); }
  bool missing() const { return missing_; }
  const NodeTexts& nodes() const { return nodes_; }
  int64_t list_zxid() const { return list_zxid_; }
  // The zxid of the directory's creation, as last listed. If it differs, this is another directory.
  int64_t created_zxid() const { return created_zxid_; }

  // Whether an answer was older than the known state, since OnConnected.
  bool stale() const { return stale_; }
  // How often in a row OnConnected has begun again because an answer was stale; 0 once a round was
  // complete.
  uint32_t stale_rounds() const { return stale_rounds_; }
  // Reads that were asked for, since the beginning.
  uint64_t reads() const { return reads_; }
  // Accepts the next answers even if they are older. For an ensemble that was restored.
  void Forget();

 private:
  bool IsStale(int64_t zxid, int64_t known);
  void AfterAnswer();

  NodeTexts nodes_;
  int64_t list_zxid_ = 0;
  int64_t created_zxid_ = 0;
  bool listed_ = false;
  bool missing_ = false;
  Wanted wanted_;
  std::set<std::string, std::less<>> unread_;  // wanted, or asked for without an answer yet
  bool stale_ = false;
  uint32_t stale_rounds_ = 0;
  uint64_t reads_ = 0;
};

}  // namespace headgate::watch::zookeeper
