// MULTI, EXEC and DISCARD. The texts and the order of replies are those of Redis 7, except for the
// bounds.
#include "headgate/front/resp/transaction.h"

#include "headgate/front/resp/conversation.h"
#include "headgate/wire/resp_reader.h"

namespace headgate::front::resp {
namespace transaction_test {

using ::testing::EndsWith;

const std::string kThrottle = "CL.THROTTLE k 4 1 1000\r\n";

std::string Repeated(std::string_view text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

TEST(Transaction, ExecutesItsCommandsInOrder) {
  World world;
  Conversation client(world);
  EXPECT_EQ(client.Send("MULTI\r\n"), "+OK\r\n");
  EXPECT_EQ(client.Send(kThrottle), "+QUEUED\r\n");
  EXPECT_EQ(world.own_limits.of(limiter::Outcome::kAllowed), 0u);
  EXPECT_EQ(client.Send("ping\r\n" + kThrottle), "+QUEUED\r\n+QUEUED\r\n");
  EXPECT_EQ(client.Send("EXEC\r\nPING\r\n"),
            "*3\r\n*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:1000\r\n+PONG\r\n"
            "*5\r\n:0\r\n:5\r\n:3\r\n:-1\r\n:2000\r\n+PONG\r\n");
  EXPECT_EQ(world.own_limits.of(limiter::Outcome::kAllowed), 2u);
  // The next command is no longer part of it.
  EXPECT_EQ(client.Send(kThrottle), "*5\r\n:0\r\n:5\r\n:2\r\n:-1\r\n:3000\r\n");
  EXPECT_EQ(client.Send("MULTI\r\nEXEC\r\n"), "+OK\r\n*0\r\n");
}

TEST(Transaction, AnErrorWhileItIsExecutedStopsNoOtherCommand) {
  World world;
  Conversation client(world);
  client.Send("MULTI\r\nCL.THROTTLE k x 1 1\r\n" + kThrottle);
  EXPECT_EQ(client.Send("EXEC\r\n"),
            "*2\r\n-Cell error: Store error: Couldn't parse as integer: x\r\n"
            "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:1000\r\n");
}

TEST(Transaction, ACommandThatIsRefusedOnArrivalDiscardsAll) {
  for (const std::string_view refused : {"NONSENSE\r\n", "CL.THROTTLE k\r\n", "DBSIZE now\r\n"}) {
    World world;
    Conversation client(world);
    client.Send("MULTI\r\n" + kThrottle);
    EXPECT_THAT(client.Send(refused), ::testing::StartsWith("-ERR ")) << refused;
    EXPECT_EQ(client.Send(kThrottle + "EXEC\r\n"),
              "+QUEUED\r\n-EXECABORT Transaction discarded because of previous errors.\r\n");
    EXPECT_EQ(client.Send(kThrottle), "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:1000\r\n") << refused;
  }
}

// One user, `web`, with the password `secret`. Without a login, clients may only peek.
std::shared_ptr<const access::UserTable> OneUser() {
  auto users = std::make_shared<access::UserTable>();
  users->users["web"] = {.password = *access::ParsePasswordHash(access::HashPassword("secret")),
                         .rights = access::Rights::All()};
  users->anonymous = access::Rights::Of(access::Right::kRead);
  return users;
}

TEST(Transaction, ACommandThatOnlyALoginMayQueueIsRefusedAfterTheLoginIsLost) {
  World world({.users = OneUser()});
  Conversation client(world);
  client.session().SetWaker([] {});
  client.Send("AUTH web secret\r\n");
  ASSERT_TRUE(world.posted.RunNext());
  ASSERT_EQ(client.Send(""), "+OK\r\n");
  const std::string check = "HG.CHECK d" + Repeated(" ENTRIES 1 user ann", 20) + "\r\n";
  client.Send("MULTI\r\n" + check + kThrottle);
  world.access.Replace(access::Everybody(access::Rights::Of(access::Right::kRead)));
  const std::string refused = "-NOAUTH Authentication required.\r\n";
  EXPECT_EQ(client.Send("EXEC\r\n"), "*2\r\n" + refused + refused);
  EXPECT_EQ(client.Send("PING\r\n"), "+PONG\r\n");
  // The smaller bounds hold again.
  EXPECT_THAT(client.Send(Repeated("x ", 70) + "\r\n"),
              ::testing::StartsWith("-ERR Protocol error"));
}

TEST(Transaction, CountsTheMemoryThatItHolds) {
  World world({.users = OneUser()});
  Conversation client(world);
  client.session().SetWaker([] {});
  const std::string docs = client.Send("COMMAND DOCS\r\n");
  EXPECT_LE(client.session().BufferedBytes(), 4096u);
  client.Send("MULTI\r\nECHO " + std::string(10'000, 'x') + "\r\n");
  EXPECT_GE(client.session().BufferedBytes(), 10'000u);
  client.Send("DISCARD\r\n");
  EXPECT_LE(client.session().BufferedBytes(), 4096u);

  client.Send("MULTI\r\n" + Repeated("COMMAND DOCS\r\n", 20) + "AUTH web secret\r\n");
  EXPECT_EQ(client.Send("EXEC\r\n"), "");
  EXPECT_TRUE(client.progress.waiting());
  EXPECT_GE(client.session().BufferedBytes(), 20 * docs.size());
  ASSERT_TRUE(world.posted.RunNext());
  EXPECT_TRUE(client.Send("") == "*21\r\n" + Repeated(docs, 20) + "+OK\r\n");
  EXPECT_LE(client.session().BufferedBytes(), 4096u) << "an idle connection holds little";
}

TEST(Transaction, ItsRepliesHaveABound) {
  World world;
  Conversation client(world);
  const std::string docs = client.Send("COMMAND DOCS\r\n");
  const std::string error =
      "-ERR not executed: the transaction has more than 524288 bytes of replies\r\n";
  // The first command that exceeds the bound is still answered.
  const size_t executed = (512 << 10) / docs.size() + 1;
  ASSERT_LT(executed, 120u);
  const std::string replies =
      client.Send("MULTI\r\n" + Repeated("COMMAND DOCS\r\n", 120) + kThrottle + "EXEC\r\n");
  // A difference of texts this long would take minutes.
  EXPECT_TRUE(replies == "+OK\r\n" + Repeated("+QUEUED\r\n", 121) + "*121\r\n" +
                             Repeated(docs, executed) + Repeated(error, 121 - executed));
  EXPECT_EQ(world.context.counters.errors.value(), 121 - executed);
  EXPECT_EQ(client.Send(kThrottle), "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:1000\r\n");
}

TEST(Transaction, ACommandWithoutAccessDiscardsAll) {
  World world;
  Conversation client(world, {.loopback = false});
  EXPECT_THAT(client.Send("MULTI\r\nHG.RESET d ENTRIES 1 k v\r\nEXEC\r\n"),
              ::testing::AllOf(::testing::HasSubstr("-NOPERM "),
                               EndsWith("-EXECABORT Transaction discarded because of previous "
                                        "errors.\r\n")));
}

TEST(Transaction, IsDiscardedOnRequest) {
  World world;
  Conversation client(world);
  EXPECT_EQ(client.Send("MULTI\r\n" + kThrottle + "DISCARD\r\n" + kThrottle),
            "+OK\r\n+QUEUED\r\n+OK\r\n*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:1000\r\n");
  EXPECT_EQ(client.Send("MULTI\r\nMULTI\r\nEXEC\r\n"),
            "+OK\r\n-ERR MULTI calls can not be nested\r\n*0\r\n");
  EXPECT_EQ(client.Send("MULTI\r\nEXEC now\r\nEXEC\r\n"),
            "+OK\r\n-EXECABORT Transaction discarded because of: wrong number of arguments for "
            "'exec' command\r\n-ERR EXEC without MULTI\r\n");
  EXPECT_EQ(client.Send("EXEC\r\n"), "-ERR EXEC without MULTI\r\n");
  EXPECT_EQ(client.Send("DISCARD\r\n"), "-ERR DISCARD without MULTI\r\n");
  EXPECT_EQ(client.Send("MULTI now\r\nPING\r\n"),
            "-ERR wrong number of arguments for 'multi' command\r\n+PONG\r\n");
}

TEST(Transaction, EndsWithTheConversation) {
  World world;
  Conversation client(world);
  EXPECT_THAT(client.Send("MULTI\r\nRESET\r\nPING\r\n"), EndsWith("+RESET\r\n+PONG\r\n"));
  EXPECT_THAT(client.Send("MULTI\r\nQUIT\r\n"), EndsWith("+OK\r\n"));
  EXPECT_TRUE(client.progress.close);
}

TEST(Transaction, HasBounds) {
  const std::string discarded = "-EXECABORT Transaction discarded because of previous errors.\r\n";
  const std::string too_many = "-ERR more than 128 commands or 16384 bytes in a transaction\r\n";
  const std::string ping = "PING\r\n";
  {
    World world;
    Conversation client(world);
    EXPECT_EQ(client.Send("MULTI\r\n" + Repeated(ping, 128) + "EXEC\r\n"),
              "+OK\r\n" + Repeated("+QUEUED\r\n", 128) + "*128\r\n" + Repeated("+PONG\r\n", 128));
    EXPECT_EQ(client.Send("MULTI\r\n" + Repeated(ping, 129) + "EXEC\r\n"),
              "+OK\r\n" + Repeated("+QUEUED\r\n", 128) + too_many + discarded);
  }
  World world;
  Conversation client(world);
  const std::string echo = "ECHO ";
  const std::string fits(Transaction::kBytesMax - echo.size() - 2, 'x');
  EXPECT_EQ(client.Send("MULTI\r\n" + echo + fits + "\r\n"), "+OK\r\n+QUEUED\r\n");
  EXPECT_THAT(client.Send("EXEC\r\n"), ::testing::StartsWith("*1\r\n$16377\r\n"));
  EXPECT_EQ(client.Send("MULTI\r\n" + echo + fits + "x\r\nEXEC\r\n"),
            "+OK\r\n" + too_many + discarded);
}

}  // namespace transaction_test
}  // namespace headgate::front::resp
