// The nodes of buckets, and the versions of their values.
//
//   hg:{t|user123}  →  ROOT/state/4f/hg:%7Bt%7Cuser123%7D
//
// There are 256 directories, chosen by a hash of the name, so that none has a huge list of
// children.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "headgate/client/zookeeper/client.h"
#include "headgate/store/cas/versioned_store.h"

namespace headgate::store::zookeeper {

inline constexpr uint32_t kShardCount = 256;

// The name of a bucket's nodes. A hash, if it would be longer than 200 bytes.
std::string BucketNodeName(std::string_view name);

class StateNodes {
 public:
  // `root` is the path of a node.
  explicit StateNodes(std::string_view root);

  // The node of a bucket.
  std::string PathOf(std::string_view name) const;
  std::string ShardPath(uint32_t shard) const;  // of a directory, `shard` < kShardCount

 private:
  const std::string state_;  // "ROOT/state/"
};

// ZooKeeper's version of a value counts its writes, and begins again at 0 if its node is deleted
// and created again. So the number here also contains the transaction that created the node.
inline cas::Version VersionOf(const client::zookeeper::NodeStat& stat) {
  const auto zxid = static_cast<uint64_t>(stat.created_zxid);
  // An epoch of the ensemble, and a counter within it.
  const auto made = static_cast<uint32_t>(zxid) + static_cast<uint32_t>(zxid >> 32) * 0x9e3779b1u;
  return {.number = uint64_t{made} << 32 | static_cast<uint32_t>(stat.version)};
}
// The part that ZooKeeper compares.
inline int32_t NodeVersionOf(cas::Version version) {
  return static_cast<int32_t>(static_cast<uint32_t>(version.number));
}
inline bool IsSameNode(cas::Version a, cas::Version b) { return a.number >> 32 == b.number >> 32; }

}  // namespace headgate::store::zookeeper
