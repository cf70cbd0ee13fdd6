#include "headgate/client/zookeeper/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::client::zookeeper {
namespace place_test {

std::string NameOfUrl(std::string_view url) {
  const auto place = ParsePlace(url, "/rate-limiter");
  return place.ok() ? NameOf(*place) : std::string(place.status().message());
}

TEST(Place, IsServersAndAPath) {
  EXPECT_EQ(NameOfUrl("zk://localhost:2182/limits"), "zk://localhost:2182/limits");
  EXPECT_EQ(NameOfUrl("zk://a,b:2182,[::1]:2183/x/y/"), "zk://a:2181,b:2182,[::1]:2183/x/y");
  EXPECT_EQ(NameOfUrl("zk://a"), "zk://a:2181/rate-limiter");
  EXPECT_EQ(NameOfUrl("zk://a/"), "zk://a:2181/");
  EXPECT_EQ(NameOfUrl("zk://a/x%40y"), "zk://a:2181/x@y");
}

TEST(Place, TakesALoginThatItsNameDoesNotShow) {
  const auto place = ParsePlace("zk://admin:p%40ss@w:rd@a:2181/x", "/");
  ASSERT_TRUE(place.ok()) << place.status();
  EXPECT_EQ(place->digest.Now(), "admin:p@ss@w:rd");
  EXPECT_EQ(NameOf(*place), "zk://a:2181/x");
}

TEST(Place, TakesAPasswordThatIsNotInTheUrl) {
  EXPECT_EQ(ParsePlace("zk://gate@a", "/", "p%:w")->digest.Now(), "gate:p%:w");
  EXPECT_EQ(ParsePlace("zk://gate:old@a", "/", "new")->digest.Now(), "gate:new");
  EXPECT_EQ(ParsePlace("zk://a", "/", "new").status().message(),
            "a password needs a user: zk://USER@HOST");
}

TEST(Place, IsTheSameByItsPathAndOneServer) {
  const auto place = [](std::string_view url) { return *ParsePlace(url, "/rate-limiter"); };
  const Place one = place("zk://a,b:2182/rate-limiter");
  EXPECT_TRUE(SamePlace(one, place("zk://user:secret@c,b:2182")));
  EXPECT_FALSE(SamePlace(one, place("zk://a,b:2182/other")));
  EXPECT_FALSE(SamePlace(one, place("zk://a:2182,b/rate-limiter")));
}

TEST(Place, SaysWhatIsWrong) {
  EXPECT_EQ(NameOfUrl("redis://a"), "it does not begin with zk://");
  EXPECT_EQ(NameOfUrl("zk://"), "a host is missing");
  EXPECT_EQ(NameOfUrl("zk:///path"), "a host is missing");
  EXPECT_EQ(NameOfUrl("zk://a,a:2181"), "a:2181 is named twice");
  EXPECT_EQ(NameOfUrl("zk://a:0"), "'0' is not a port (1 to 65535)");
  EXPECT_EQ(NameOfUrl("zk://a//x"), "'//x' is not the path of a node, such as /rate-limiter");
  EXPECT_EQ(NameOfUrl("zk://a/x/.."), "'/x/..' is not the path of a node, such as /rate-limiter");
  EXPECT_EQ(NameOfUrl("zk://user:1234/SECRET@a"),
            "an '@' stands behind a '/'; write a '/' of a password as %2F, and an '@' of a path as "
            "%40");
  EXPECT_EQ(NameOfUrl("zk://a/x%zz"),
            "a '%' of the path is not followed by two hexadecimal digits");
  EXPECT_EQ(NameOfUrl("zk://secret@a"),
            "a login is USER:PASSWORD, or USER if a file has the password, for ZooKeeper's digest "
            "scheme");
  EXPECT_EQ(NameOfUrl("zk://a:%s@a"),
            "a '%' of user or password is not followed by two hexadecimal digits");
}

}  // namespace place_test
}  // namespace headgate::client::zookeeper
