#include "headgate/store/zookeeper/state_nodes.h"

#include <fmt/format.h>

#include "headgate/base/crc32c.h"
#include "headgate/client/zookeeper/node_name.h"
#include "headgate/wire/digest.h"

namespace headgate::store::zookeeper {
namespace {

constexpr size_t kNameBytesMax = 200;

}  // namespace

std::string BucketNodeName(std::string_view name) {
  std::string node = client::zookeeper::NodeNameOf(name);
  if (node.size() > kNameBytesMax)
    node = "sha256:" + wire::DigestHex(wire::Digest::kSha256, name).substr(0, 32);
  return node;
}

StateNodes::StateNodes(std::string_view root) : state_(client::zookeeper::Below(root, "state/")) {}

std::string StateNodes::PathOf(std::string_view name) const {
  const std::string node = BucketNodeName(name);
  return fmt::format("{}/{}", ShardPath(base::Crc32c(node) % kShardCount), node);
}

std::string StateNodes::ShardPath(uint32_t shard) const {
  return fmt::format("{}{:02x}", state_, shard);
}

}  // namespace headgate::store::zookeeper
