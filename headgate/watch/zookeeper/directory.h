// The nodes of one directory of an ensemble, as far as they have been read. It takes what ZooKeeper
// answers, and says what to read next; it reads nothing itself.
//
// Nothing ever goes backwards: an answer that is older than what is known (by its zxid) comes from
// a server that lags behind, and is counted and asked for again.
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
  // To be read now, with a watch. Each is told once, until it is wanted again.
  struct Wanted {
    bool list = false;
    std::set<std::string, std::less<>> nodes{};
  };
  Wanted TakeWanted();

  // Starts from the nodes that were known earlier, for example before a restart.
  void Remember(NodeTexts nodes, int64_t list_zxid);

  // There is a connection: watches may have been lost, so everything is wanted.
  void OnConnected();
  // A watch of the directory, or of a node in it, has fired.
  void OnListChanged() { wanted_.list = true; }
  void OnNodeChanged(std::string_view name);

  // Answers. For a read that failed, say again what was wanted.
  void OnListed(const std::vector<std::string>& names, int64_t zxid);
  // The directory itself is not there.
  void OnMissing();
  void OnRead(const std::string& name, NodeText node);
  // The node was not there any more. It counts as deleted once a list says so too.
  void OnGone(const std::string& name);
  // The node may not be read. Its last known text stays; say Want to try again.
  void OnUnreadable(const std::string& name) { unread_.erase(name); }
  void Want(const std::string& name);

  // Whether everything has been read since the last connection.
  bool complete() const { return listed_ && !wanted_.list && unread_.empty(); }
  bool missing() const { return missing_; }
  const NodeTexts& nodes() const { return nodes_; }
  int64_t list_zxid() const { return list_zxid_; }

  // Answers that were older than what is known, since the last one that was not.
  uint32_t stale_answers() const { return stale_answers_; }
  // Reads that were asked for, since the beginning.
  uint64_t reads() const { return reads_; }
  // Takes whatever the next answers say, even if it is older. For an ensemble that was restored.
  void Forget();

 private:
  bool IsStale(int64_t zxid, int64_t known);

  NodeTexts nodes_;
  int64_t list_zxid_ = 0;
  bool listed_ = false;
  bool missing_ = false;
  Wanted wanted_;
  std::set<std::string, std::less<>> unread_;  // wanted, or asked for without an answer yet
  uint32_t stale_answers_ = 0;
  uint64_t reads_ = 0;
};

}  // namespace headgate::watch::zookeeper
