// The answers to a client without a login, if it has no rights. Redis 7 with `requirepass` answers
// the same, but for PING, which probes of the connection send.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "headgate/front/resp/commands.h"
#include "headgate/front/resp/conversation.h"

namespace headgate::front::resp {
namespace before_login_test {

using access::Right;
using access::Rights;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kNoAuth = "-NOAUTH Authentication required.\r\n";
constexpr std::string_view kHelloNoAuth =
    "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH "
    "<user> <pass> option can be used to authenticate the client and select the RESP protocol "
    "version at the same time\r\n";

// One user, `web`, with the password `secret`, and these rights without a login.
access::AccessOptions OneUser(Rights anonymous = {}) {
  auto users = std::make_shared<access::UserTable>();
  users->users["web"] = {.password = *access::ParsePasswordHash(access::HashPassword("secret")),
                         .rights = Rights::Of(Right::kCheck)};
  users->anonymous = anonymous;
  return {.users = std::move(users)};
}

// As many words as the command needs, all but the first one "1".
std::string Shortest(const CommandSpec& spec) {
  std::string line(spec.name);
  for (int i = 1; i < std::abs(spec.arity); ++i) line += " 1";
  return line + "\r\n";
}

TEST(BeforeLogin, EveryOtherCommandIsRefused) {
  World world(OneUser());
  int refused = 0;
  for (const CommandSpec& spec : Commands()) {
    Conversation client(world);
    const std::string reply = client.Send(Shortest(spec));
    const bool open = spec.verb == Verb::kPing || spec.verb == Verb::kHello ||
                      spec.verb == Verb::kAuth || spec.verb == Verb::kReset ||
                      spec.verb == Verb::kQuit || spec.verb == Verb::kHttp;
    if (open || spec.verb == Verb::kExec) {
      EXPECT_NE(reply, kNoAuth) << spec.name;
      continue;
    }
    EXPECT_EQ(reply, kNoAuth) << spec.name;
    ++refused;
  }
  EXPECT_GE(refused, 25);
}

TEST(BeforeLogin, NothingIsRevealedByAnOption) {
  World world(OneUser());
  Conversation client(world);
  for (const char* line : {"COMMAND DOCS", "COMMAND COUNT", "CONFIG GET save", "CLIENT INFO",
                           "CLIENT SETINFO LIB-NAME x", "CLIENT SETNAME x", "CLIENT HELP",
                           "INFO server", "SELECT 0", "ECHO hi", "DISCARD"}) {
    EXPECT_EQ(client.Send(fmt::format("{}\r\n", line)), kNoAuth) << line;
  }
  EXPECT_EQ(client.Send("EXEC\r\n"),
            "-EXECABORT Transaction discarded because of: NOAUTH Authentication required.\r\n");
  EXPECT_EQ(client.Send("PING\r\nRESET\r\nQUIT\r\n"), "+PONG\r\n+RESET\r\n+OK\r\n");
}

TEST(BeforeLogin, ErrorsInTheFormOfACommandComeFirst) {
  World world(OneUser());
  Conversation client(world);
  EXPECT_EQ(client.Send("NOSUCH a\r\n"),
            "-ERR unknown command 'NOSUCH', with args beginning with: 'a' \r\n");
  EXPECT_EQ(client.Send("TIME x\r\n"), "-ERR wrong number of arguments for 'time' command\r\n");
}

TEST(BeforeLogin, HelloNeedsOne) {
  World world(OneUser());
  Conversation client(world);
  for (const char* line : {"HELLO", "HELLO 2", "HELLO 3", "HELLO 3 SETNAME x"})
    EXPECT_EQ(client.Send(fmt::format("{}\r\n", line)), kHelloNoAuth) << line;
  EXPECT_EQ(client.Send("HELLO 9\r\n"), "-NOPROTO unsupported protocol version\r\n");
  EXPECT_EQ(client.Send("HELLO 3 FOO\r\n"), "-ERR Syntax error in HELLO option 'FOO'\r\n");
}

// redis-py, go-redis, ioredis and node-redis begin like this, in one pipeline or in several.
TEST(BeforeLogin, TheFirstCommandsOfClientsWithAPassword) {
  const std::string after =
      "CLIENT SETNAME me\r\nCLIENT SETINFO LIB-NAME mine\r\nCLIENT SETINFO LIB-VER 1\r\n"
      "SELECT 0\r\nCL.THROTTLE k 4 1 1000\r\n";
  const std::string replies =
      "+OK\r\n+OK\r\n+OK\r\n+OK\r\n*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:1000\r\n";
  for (const std::string first : {"AUTH web secret\r\n", "HELLO 3 AUTH web secret SETNAME a\r\n"}) {
    World world(OneUser());
    Conversation client(world);
    client.session().SetWaker([] {});
    EXPECT_EQ(client.Send(first + after), "") << "the password is being verified";
    ASSERT_TRUE(world.posted.RunNext());
    EXPECT_THAT(client.Send(""), EndsWith(replies));
    EXPECT_EQ(client.Send("RESET\r\nTIME\r\n"), "+RESET\r\n" + std::string(kNoAuth));
  }
}

// As Redis, whose user `default` needs no password then.
TEST(BeforeLogin, ARightWithoutALoginOpensTheConnection) {
  for (const Right right : {Right::kCheck, Right::kRead}) {
    World world(OneUser(Rights::Of(right)));
    Conversation client(world);
    EXPECT_THAT(client.Send("HELLO 3 SETNAME x\r\n"), StartsWith("%7\r\n"));
    EXPECT_EQ(client.Send("CLIENT SETINFO LIB-NAME x\r\nSELECT 0\r\nMULTI\r\nPING\r\nEXEC\r\n"),
              "+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n+PONG\r\n");
    EXPECT_THAT(client.Send("COMMAND COUNT\r\n"), StartsWith(":"));
  }
}

TEST(BeforeLogin, ACredentialAloneClosesNothingThatWasOpen) {
  World world({.credential = "secret"});
  Conversation client(world);
  EXPECT_THAT(client.Send("HELLO 3\r\nTIME\r\nINFO\r\n"), Not(HasSubstr("NOAUTH")));
}

TEST(BeforeLogin, ALostLoginDiscardsTheTransaction) {
  World world(OneUser());
  Conversation client(world);
  client.session().SetWaker([] {});
  client.Send("AUTH web secret\r\n");
  ASSERT_TRUE(world.posted.RunNext());
  EXPECT_EQ(client.Send("MULTI\r\nECHO a\r\n"), "+OK\r\n+OK\r\n+QUEUED\r\n");
  world.access.Replace(std::make_shared<access::UserTable>());
  EXPECT_EQ(client.Send("ECHO b\r\n"), kNoAuth);
  EXPECT_EQ(client.Send("EXEC\r\n"),
            "-EXECABORT Transaction discarded because of: NOAUTH Authentication required.\r\n");
  EXPECT_LE(client.session().BufferedBytes(), 4096u);
  EXPECT_EQ(client.Send("PING\r\n"), "+PONG\r\n") << "not QUEUED";
}

TEST(BeforeLogin, ALostLoginBoundsACommandThatHasBegun) {
  World world(OneUser());
  Conversation client(world);
  client.session().SetWaker([] {});
  client.Send("AUTH web secret\r\n");
  ASSERT_TRUE(world.posted.RunNext());
  EXPECT_EQ(client.Send("*100\r\n$4\r\nPING\r\n"), "+OK\r\n");
  world.access.Replace(std::make_shared<access::UserTable>());
  EXPECT_EQ(client.Send("$1\r\n"), "-ERR Protocol error: unauthenticated multibulk length\r\n");
}

}  // namespace before_login_test
}  // namespace headgate::front::resp
