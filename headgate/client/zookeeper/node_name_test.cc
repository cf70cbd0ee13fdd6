#include "headgate/client/zookeeper/node_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/base/random.h"

namespace headgate::client::zookeeper {
namespace node_name_test {

TEST(NodeName, WhatPeopleTypeStaysItself) {
  for (const std::string_view text : {"test-key", "gold_17", "a.b", "user@example.com", "gold-*",
                                      "c2VjcmV0==", "...", "urn:uuid:6e8bc430"}) {
    EXPECT_EQ(NodeNameOf(text), text);
    EXPECT_EQ(TextOfNodeName(text), text);
  }
}

TEST(NodeName, EscapesWhatZooKeeperRefuses) {
  EXPECT_EQ(NodeNameOf("a/b"), "a%2Fb");
  EXPECT_EQ(NodeNameOf("100%"), "100%25");
  EXPECT_EQ(NodeNameOf("."), "%2E");
  EXPECT_EQ(NodeNameOf(".."), "%2E%2E");
  EXPECT_EQ(NodeNameOf("\x01 ü"), "%01%20%C3%BC");
}

TEST(NodeName, EveryTextComesBack) {
  base::Random random(7);
  for (int round = 0; round < 2'000; ++round) {
    std::string text;
    for (uint64_t size = 1 + random.Below(8); size > 0; --size)
      text.push_back(static_cast<char>(1 + random.Below(255)));
    const std::string name = NodeNameOf(text);
    EXPECT_TRUE(IsNodePath("/" + name)) << name;
    EXPECT_EQ(TextOfNodeName(name), text) << name;
  }
}

TEST(NodeName, RefusesWhatIsNotEscapedFully) {
  for (const std::string_view name : {"", "%", "a%2", "%zz", "%2", "%00", "100%"})
    EXPECT_EQ(TextOfNodeName(name), std::nullopt) << name;
  EXPECT_EQ(TextOfNodeName("a%2fb"), "a/b");
}

TEST(NodePath, OnlyPathsThatZooKeeperTakes) {
  for (const std::string_view path : {"/", "/a", "/rate-limiter/config/a%2Fb", "/a.b/..c", "/a b",
                                      "/ü", "/\u00a0", "/\ud7ff", "/\uf900", "/\uffef"})
    EXPECT_TRUE(IsNodePath(path)) << path;
  for (const std::string_view path :
       {"",        "a",       "/a/",         "//",    "/a//b",   "/.",           "/a/..",
        "/a/../b", "/\x01",   "/\x1f",       "/\x7f", "/\u0080", "/\u009f",      "/\ue000",
        "/\uf8ff", "/\ufff0", "/\U00010000", "/\xff", "/\xc3",   "/\xed\xa0\x80"})
    EXPECT_FALSE(IsNodePath(path)) << path;
}

}  // namespace node_name_test
}  // namespace headgate::client::zookeeper
