#include "headgate/store/zookeeper/state_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "headgate/client/zookeeper/node_name.h"

namespace headgate::store::zookeeper {
namespace state_nodes_test {

using ::testing::MatchesRegex;

TEST(StateNodes, AreNamedAfterTheirBuckets) {
  EXPECT_THAT(StateNodes("/rate-limiter").PathOf("hg:{t|user123}"),
              MatchesRegex("/rate-limiter/state/[0-9a-f][0-9a-f]/hg:%7Bt%7Cuser123%7D"));
  EXPECT_THAT(StateNodes("/").PathOf("a"), MatchesRegex("/state/[0-9a-f][0-9a-f]/a"));
  EXPECT_EQ(StateNodes("/x").ShardPath(10), "/x/state/0a");
}

TEST(StateNodes, TakeEveryName) {
  const StateNodes nodes("/x");
  std::set<std::string> paths;
  std::string every;
  for (int c = 0; c < 256; ++c) {
    every.push_back(static_cast<char>(c));
    paths.insert(nodes.PathOf(std::string(1, static_cast<char>(c))));
  }
  EXPECT_EQ(paths.size(), 256u);
  for (const std::string& name :
       {every, std::string("."), std::string(".."), std::string(5'000, '/')}) {
    const std::string path = nodes.PathOf(name);
    EXPECT_TRUE(client::zookeeper::IsNodePath(path)) << path;
    EXPECT_LE(path.size(), 220u);
  }
  EXPECT_NE(nodes.PathOf(std::string(300, 'a')), nodes.PathOf(std::string(301, 'a')));
}

TEST(StateNodes, SpreadOverTheDirectories) {
  const StateNodes nodes("/x");
  std::map<std::string, int> counts;
  for (int i = 0; i < 25'600; ++i) {
    const std::string path = nodes.PathOf("hg:{t|user" + std::to_string(i) + "}");
    ++counts[path.substr(0, path.rfind('/'))];
  }
  EXPECT_EQ(counts.size(), kShardCount);
  for (const auto& [path, count] : counts) EXPECT_LT(count, 200) << path;
}

TEST(StateNodes, AVersionIsNotRepeatedByAnotherNode) {
  const cas::Version first = VersionOf({.created_zxid = (1ll << 32) + 5, .version = 3});
  EXPECT_EQ(NodeVersionOf(first), 3);
  EXPECT_TRUE(IsSameNode(first, VersionOf({.created_zxid = (1ll << 32) + 5, .version = 4})));
  for (const int64_t zxid : {(1ll << 32) + 6, (2ll << 32) + 5, 5ll}) {
    const cas::Version other = VersionOf({.created_zxid = zxid, .version = 3});
    EXPECT_NE(first, other) << zxid;
    EXPECT_FALSE(IsSameNode(first, other));
  }
  // ZooKeeper's versions wrap.
  EXPECT_EQ(NodeVersionOf(VersionOf({.created_zxid = 7, .version = -2})), -2);
}

}  // namespace state_nodes_test
}  // namespace headgate::store::zookeeper
