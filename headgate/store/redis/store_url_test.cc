#include "headgate/store/redis/store_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::store::redis {
namespace store_url_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

RedisOptions Parsed(std::string_view url) {
  const auto options = ParseStoreUrl(url);
  EXPECT_TRUE(options.ok()) << url << ": " << options.status();
  return options.value_or(RedisOptions{});
}

std::vector<std::string> Sentences(const std::vector<OptionProblem>& problems) {
  std::vector<std::string> sentences;
  for (const OptionProblem& problem : problems) sentences.push_back(problem.what);
  return sentences;
}

std::string Problem(std::string_view url) {
  return std::string(ParseStoreUrl(url).status().message());
}

TEST(StoreUrl, NamesOneServer) {
  const RedisOptions options = Parsed("redis://10.0.0.7");
  EXPECT_EQ(options.topology, TopologyKind::kSingle);
  EXPECT_THAT(options.servers, ElementsAre(net::StreamTarget{.host = "10.0.0.7", .port = 6379}));
  EXPECT_FALSE(options.tls);
  EXPECT_EQ(options.database, 0u);
  EXPECT_EQ(Parsed("redis://cache.example:7000/3").database, 3u);
  EXPECT_EQ(Parsed("redis://cache.example:7000/").servers[0].port, 7000);
  EXPECT_TRUE(Parsed("rediss://cache.example").tls);
  EXPECT_EQ(Parsed("redis://[::1]:7000").servers[0].host, "::1");
}

TEST(StoreUrl, HoldsUserAndPassword) {
  const RedisOptions options = Parsed("redis://gate:p%40ss:w%2Ford@host");
  EXPECT_EQ(options.user, "gate");
  EXPECT_EQ(options.password.Now(), "p@ss:w/ord");
  EXPECT_EQ(Parsed("redis://:secret@host").user, "");
  EXPECT_EQ(Parsed("redis://:secret@host").password.Now(), "secret");
  EXPECT_EQ(Parsed("redis://:a@b@host").password.Now(), "a@b");
}

TEST(StoreUrl, MayNameAUserWhosePasswordComesFromElsewhere) {
  for (const std::string_view url : {"redis://g%61te@host:7000/1", "redis://gate:@host:7000/1"}) {
    RedisOptions options = Parsed(url);
    EXPECT_EQ(options.user, "gate");
    EXPECT_EQ(options.servers[0].ToString(), "host:7000");
    EXPECT_THAT(Sentences(options.Problems()), ElementsAre("a user needs a password"));
    options.password = "secret";
    EXPECT_THAT(options.Problems(), IsEmpty());
  }
}

TEST(StoreUrl, NamesSeveralServers) {
  const RedisOptions ring = Parsed("redis+ring://a:1,b,c:3/2");
  EXPECT_EQ(ring.topology, TopologyKind::kRing);
  EXPECT_THAT(ring.servers, ElementsAre(net::StreamTarget{.host = "a", .port = 1},
                                        net::StreamTarget{.host = "b", .port = 6379},
                                        net::StreamTarget{.host = "c", .port = 3}));
  EXPECT_EQ(ring.database, 2u);
  EXPECT_EQ(Parsed("rediss+cluster://a,b").topology, TopologyKind::kCluster);
  const RedisOptions sentinel = Parsed("redis+sentinel://:pw@a,b:2/my%20master/4");
  EXPECT_EQ(sentinel.topology, TopologyKind::kSentinel);
  EXPECT_EQ(sentinel.master_name, "my master");
  EXPECT_EQ(sentinel.database, 4u);
  EXPECT_EQ(sentinel.servers[0].port, 26379);
  EXPECT_EQ(sentinel.servers[1].port, 2);
}

TEST(StoreUrl, NamesAUnixSocket) {
  const RedisOptions options = Parsed("redis+unix://:pw@/run/redis.sock?db=2");
  EXPECT_EQ(options.servers[0].unix_path, "/run/redis.sock");
  EXPECT_EQ(options.password.Now(), "pw");
  EXPECT_EQ(options.database, 2u);
  EXPECT_EQ(Parsed("redis+unix:///run/a@b.sock").servers[0].unix_path, "/run/a@b.sock");
}

TEST(StoreUrl, SaysWhatIsWrong) {
  EXPECT_THAT(Problem("127.0.0.1:6379"), HasSubstr("'://' is missing"));
  EXPECT_THAT(Problem("http://a"), HasSubstr("'http' is unknown"));
  EXPECT_THAT(Problem("redis+star://a"), HasSubstr("'+star' is not known"));
  EXPECT_THAT(Problem("redis://"), HasSubstr("a host is missing"));
  EXPECT_THAT(Problem("redis://a:0"), HasSubstr("'0' is not a port"));
  EXPECT_THAT(Problem("redis://a:x"), HasSubstr("a port (1 to 65535) may follow 'a'"));
  EXPECT_THAT(Problem("redis://::1"), HasSubstr("square brackets"));
  EXPECT_THAT(Problem("redis://[::1"), HasSubstr("the ']'"));
  EXPECT_THAT(Problem("redis://[::1]x"), HasSubstr("a port (1 to 65535) may follow '::1'"));
  EXPECT_THAT(Problem("redis://a b"), HasSubstr("'a b' is not a host"));
  EXPECT_THAT(Problem("redis://a/x"), HasSubstr("'x' is not a database number"));
  EXPECT_THAT(Problem("redis://a,b"), HasSubstr("several servers need"));
  EXPECT_THAT(Problem("redis+ring://a,a:6379"), HasSubstr("a:6379 is named twice"));
  EXPECT_THAT(Problem("redis+cluster://a/0"), HasSubstr("no databases"));
  EXPECT_THAT(Problem("redis+sentinel://a"), HasSubstr("master's name is missing"));
  EXPECT_THAT(Problem("redis+unix://run"), HasSubstr("begins with '/'"));
  EXPECT_THAT(Problem("redis+unix:///a?x=1"), HasSubstr("only db=NUMBER"));
  EXPECT_THAT(Sentences(Parsed("redis+unix:///" + std::string(200, 'a')).Problems()),
              ElementsAre(HasSubstr("201 bytes")));
  EXPECT_THAT(Problem("rediss+unix:///a"), HasSubstr("TLS over a Unix socket"));
}

TEST(StoreUrl, NeverSaysThePassword) {
  for (const std::string_view url : {"redis://secret%@a",
                                     "redis://u:secret%@a",
                                     "redis://u:secret@a:x",
                                     "redis://u:secret@",
                                     "redis+ring://u:secret@a,a",
                                     "redis://u:secret/x@a",
                                     "redis://u:x/secret@a",
                                     "redis://u:secret/1@a",
                                     "redis://u:secret?x@a",
                                     "redis://u:x?secret@a",
                                     "redis://secret/1@a",
                                     "redis://a:1?password=secret",
                                     "redis://a/1?password=secret",
                                     "redis://a?secret",
                                     "redis://a:secret",
                                     "redis://u:secret:6379",
                                     "redis://:secret",
                                     "redis://[::1]secret",
                                     "redis+sentinel://u:x/secret@a/main",
                                     "redis+unix:///run/a?password=secret",
                                     "redis+unix://u:x/secret@/run/a",
                                     "redis+unix:///run/a?db=secret",
                                     "secret@a://",
                                     "u:secret@a://b",
                                     "redis:secret@a:1"}) {
    EXPECT_FALSE(ParseStoreUrl(url).ok()) << url;
    EXPECT_THAT(Problem(url), Not(HasSubstr("secret"))) << url;
  }
  EXPECT_THAT(Problem("redis://u:sec/ret@a"), HasSubstr("%2F"));
  EXPECT_THAT(StoreName(Parsed("rediss://u:secret@a/2")), "rediss://a:6379/2");
}

TEST(StoreUrl, IsWrittenAsItIsRead) {
  for (const std::string_view url :
       {"redis://a:1", "rediss://[::1]:2/3", "redis+ring://a:1,b:2/3", "redis+cluster://a:1,b:2",
        "redis+sentinel://a:1,b:2/main/3", "redis+unix:///run/a?db=1", "redis+unix:///run/a"}) {
    EXPECT_EQ(StoreName(Parsed(url)), url);
  }
}

}  // namespace store_url_test
}  // namespace headgate::store::redis
