#include "headgate/front/resp/key_verbs.h"

#include "headgate/front/resp/conversation.h"

namespace headgate::front::resp {
namespace key_verbs_test {

using std::chrono::milliseconds;

TEST(KeyVerbs, ABucketIsAKeyUntilItIsFull) {
  World world;
  Conversation client(world, {.loopback = true});
  EXPECT_EQ(client.Send("EXISTS k\r\nTTL k\r\nPTTL k\r\n"), ":0\r\n:-2\r\n:-2\r\n");
  // A token in 1.5 s.
  client.Send("GCRA k 4 2 3\r\n");
  EXPECT_EQ(client.Send("EXISTS k other k\r\nTTL k\r\nPTTL k\r\n"), ":2\r\n:2\r\n:1500\r\n");
  client.now = client.now + milliseconds(1000) + std::chrono::nanoseconds(1);
  EXPECT_EQ(client.Send("TTL k\r\nPTTL k\r\n"), ":1\r\n:500\r\n");
  client.now = client.now + milliseconds(500);
  EXPECT_EQ(client.Send("EXISTS k\r\nTTL k\r\nPTTL k\r\n"), ":0\r\n:-2\r\n:-2\r\n");
}

TEST(KeyVerbs, DelResetsBucketsAndCountsThoseThatExisted) {
  World world;
  Conversation client(world, {.loopback = true});
  const std::string first = "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:1000\r\n";
  EXPECT_EQ(client.Send("CL.THROTTLE a 4 1 1000\r\nCL.THROTTLE b 4 1 1000\r\n"), first + first);
  EXPECT_EQ(client.Send("DEL a b a c\r\n"), ":2\r\n");
  EXPECT_EQ(client.Send("CL.THROTTLE a 4 1 1000\r\n"), first);
  // DEL needs no limit: it removes a bucket under any limit.
  client.Send("CL.THROTTLE a 9 7 60\r\n");
  EXPECT_EQ(client.Send("DEL a\r\nEXISTS a\r\n"), ":1\r\n:0\r\n");
}

TEST(KeyVerbs, NeedAccessToState) {
  World world;
  Conversation client(world, {.loopback = false});
  for (const std::string_view command : {"DEL k", "EXISTS k", "TTL k", "PTTL k"}) {
    EXPECT_THAT(client.Send(std::string(command) + "\r\n"), ::testing::StartsWith("-NOPERM "))
        << command;
  }
  Conversation local(world, {.loopback = true});
  EXPECT_EQ(local.Send("TTL a b\r\n"), "-ERR wrong number of arguments for 'ttl' command\r\n");
}

}  // namespace key_verbs_test
}  // namespace headgate::front::resp
