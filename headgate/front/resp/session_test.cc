// The commands that real clients send besides CL.THROTTLE, and their replies. The texts are those
// of Redis 7.
#include "headgate/front/resp/session.h"

#include "headgate/front/resp/conversation.h"
#include "headgate/wire/resp_reader.h"

namespace headgate::front::resp {
namespace session_test {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const net::Peer kFarAway{.loopback = false};

// All replies in readable form, one per line.
std::string Readable(std::string_view bytes) {
  wire::RespReader reader;
  std::string lines;
  while (!bytes.empty()) {
    size_t consumed = 0;
    if (reader.Read(bytes, consumed) != wire::RespReader::Step::kValue)
      return lines + "broken: " + std::string(bytes);
    lines += reader.value().ToString() + '\n';
    bytes.remove_prefix(consumed);
  }
  return lines;
}

struct Row {
  std::string sent;
  std::string answered;
};
// Runs each row in a conversation of its own.
void ExpectRows(const std::vector<Row>& rows, const access::AccessOptions& access = {}) {
  for (const Row& row : rows) {
    World world(access);
    Conversation client(world);
    EXPECT_EQ(client.Send(row.sent), row.answered) << row.sent;
  }
}

TEST(RespSession, PingEchoTimeAndQuit) {
  World world;
  Conversation client(world);
  EXPECT_EQ(client.Send("PING\r\n"), "+PONG\r\n");
  EXPECT_EQ(client.Send("ping hello\r\n"), "$5\r\nhello\r\n");
  EXPECT_EQ(client.Ask({"EcHo", std::string_view("a\0\r\n", 4)}),
            std::string("$4\r\na\0\r\n\r\n", 10));
  client.now = base::Instant::FromNanos(1'790'000'000'000'007'999);
  EXPECT_EQ(client.Send("TIME\r\n"), "*2\r\n$10\r\n1790000000\r\n$1\r\n7\r\n");
  EXPECT_FALSE(client.progress.close);
  EXPECT_EQ(client.Send("QUIT now\r\nPING\r\n"), "+OK\r\n");
  EXPECT_TRUE(client.progress.close);
  EXPECT_FALSE(client.progress.protocol_error);
}

TEST(RespSession, HelloAgreesOnAVersion) {
  World world;
  Conversation client(world);
  EXPECT_EQ(Readable(client.Send("HELLO\r\n")),
            "[\"server\", \"redis\", \"version\", \"7.2.0\", \"proto\", 2, \"id\", 1, \"mode\", "
            "\"standalone\", "
            "\"role\", \"master\", \"modules\", []]\n");
  const std::string map =
      "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.2.0\r\n$5\r\nproto\r\n:3\r\n$"
      "2\r\nid\r\n:1\r\n"
      "$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n";
  EXPECT_EQ(client.Send("HELLO 3\r\n"), map);
  EXPECT_EQ(client.Send("hello\r\n"), map);
  EXPECT_THAT(client.Send("HELLO 2\r\n"), StartsWith("*14\r\n"));
  EXPECT_THAT(client.Send("HELLO 3 SETNAME me\r\n"), StartsWith("%7\r\n"));
  EXPECT_EQ(client.Send("CLIENT GETNAME\r\n"), "$2\r\nme\r\n");
}

TEST(RespSession, HelloRefusesWhatItDoesNotUnderstand) {
  ExpectRows({
      {"HELLO 4\r\n", "-NOPROTO unsupported protocol version\r\n"},
      {"HELLO 1\r\n", "-NOPROTO unsupported protocol version\r\n"},
      {"HELLO x\r\n", "-ERR Protocol version is not an integer or out of range\r\n"},
      {"HELLO 3 FOO\r\n", "-ERR Syntax error in HELLO option 'FOO'\r\n"},
      {"HELLO 3 AUTH default\r\n", "-ERR Syntax error in HELLO option 'AUTH'\r\n"},
      {"HELLO 3 SETNAME\r\n", "-ERR Syntax error in HELLO option 'SETNAME'\r\n"},
      {"HELLO 3 SETNAME 'a b'\r\n",
       "-ERR Client names cannot contain spaces, newlines or special characters.\r\n"},
      {"HELLO 3 AUTH somebody x\r\n",
       "-WRONGPASS invalid username-password pair or user is disabled.\r\n"},
      {"HELLO 3 FOO\r\nCLIENT GETNAME\r\n", "-ERR Syntax error in HELLO option 'FOO'\r\n$-1\r\n"},
  });
}

TEST(RespSession, ALoginNeedsTheCredential) {
  const access::AccessOptions access{.credential = "secret"};
  ExpectRows(
      {
          {"AUTH secret\r\n", "+OK\r\n"},
          {"AUTH default secret\r\n", "+OK\r\n"},
          {"AUTH wrong\r\n", "-WRONGPASS invalid username-password pair or user is disabled.\r\n"},
          {"AUTH ''\r\n", "-WRONGPASS invalid username-password pair or user is disabled.\r\n"},
          {"AUTH admin secret\r\n",
           "-WRONGPASS invalid username-password pair or user is disabled.\r\n"},
          {"AUTH a b c\r\n", "-ERR syntax error\r\n"},
          {"AUTH\r\n", "-ERR wrong number of arguments for 'auth' command\r\n"},
          {"HELLO 3 AUTH default wrong\r\n",
           "-WRONGPASS invalid username-password pair or user is disabled.\r\n"},
          {"HELLO 2 AUTH default secret SETNAME a\r\nCLIENT GETNAME\r\n",
           "*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.2.0\r\n$5\r\nproto\r\n:"
           "2\r\n$2\r\nid\r\n:"
           "1\r\n"
           "$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*"
           "0\r\n$1\r\na\r\n"},
      },
      access);
  World world(access);
  Conversation client(world);
  client.Send("AUTH wrong\r\nAUTH default wrong\r\nAUTH secret\r\n");
  EXPECT_EQ(world.access.logins(access::Login::Result::kWrong), 2u);
}

TEST(RespSession, WithoutACredentialALoginIsAMisunderstanding) {
  ExpectRows({
      {"AUTH secret\r\n",
       "-ERR AUTH <password> called without any password configured for the default user. Are you "
       "sure your "
       "configuration is correct?\r\n"},
      {"AUTH default anything\r\n", "+OK\r\n"},
      {"AUTH somebody anything\r\n",
       "-WRONGPASS invalid username-password pair or user is disabled.\r\n"},
  });
}

// Before a login, a client can make the server buffer fewer bytes.
TEST(RespSession, BoundsAreTighterBeforeALogin) {
  const access::AccessOptions access{.credential = "secret"};
  ExpectRows({{"*65\r\n", "-ERR Protocol error: unauthenticated multibulk length\r\n"},
              {"*100\r\n", "-ERR Protocol error: unauthenticated multibulk length\r\n"},
              {"*1\r\n$16385\r\n", "-ERR Protocol error: unauthenticated bulk length\r\n"},
              {std::string(16385, 'a'), "-ERR Protocol error: too big inline request\r\n"},
              {"AUTH secret\r\n*1\r\n$16385\r\n", "+OK\r\n"},
              {"HELLO 2 AUTH default nope\r\n*65\r\n",
               "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
               "-ERR Protocol error: unauthenticated multibulk length\r\n"},
              {"AUTH secret\r\nRESET\r\n*65\r\n",
               "+OK\r\n+RESET\r\n-ERR Protocol error: unauthenticated multibulk length\r\n"}},
             access);
  ExpectRows({{"*65\r\n", ""}, {"*8193\r\n", "-ERR Protocol error: invalid multibulk length\r\n"}});
}

TEST(RespSession, ChecksNeedNoLogin) {
  World world({.credential = "secret"});
  Conversation client(world, kFarAway);
  EXPECT_EQ(client.Send("CL.THROTTLE k 4 1 1\r\n"), "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:1\r\n");
}

TEST(RespSession, StateVerbsNeedTheCredentialOrThisMachine) {
  const std::string refund = "HG.REFUND d ENTRIES 1 k v\r\n";
  const std::string reset = "HG.RESET d ENTRIES 1 k v\r\n";
  World locked({.credential = "secret"});
  for (const net::Peer& peer : {net::Peer{}, kFarAway}) {
    Conversation client(locked, peer);
    EXPECT_EQ(client.Send(refund + reset),
              "-NOAUTH Authentication required.\r\n-NOAUTH Authentication required.\r\n");
    EXPECT_THAT(client.Send("AUTH secret\r\n" + refund),
                AllOf(StartsWith("+OK\r\n-ERR "), Not(HasSubstr("NOAUTH"))));
    EXPECT_EQ(client.Send("RESET\r\n" + refund), "+RESET\r\n-NOAUTH Authentication required.\r\n");
  }
  World open;
  Conversation near(open);
  EXPECT_THAT(near.Send(refund), StartsWith("-ERR no rate limit configuration loaded"));
  Conversation far(open, kFarAway);
  EXPECT_EQ(far.Send(reset),
            "-NOPERM 'hg.reset' is for clients on the server's own machine while the server has no "
            "credential; set one, "
            "and log in with AUTH\r\n");
  // "AUTH default x" is accepted if no credential is set, but gives no access.
  EXPECT_THAT(far.Send("AUTH default x\r\n" + refund), StartsWith("+OK\r\n-NOPERM "));
}

TEST(RespSession, TheVerbsThatClientsSendOnConnect) {
  ExpectRows({
      {"SELECT 0\r\n", "+OK\r\n"},
      {"SELECT 1\r\n", "-ERR DB index is out of range\r\n"},
      {"SELECT -1\r\n", "-ERR DB index is out of range\r\n"},
      {"SELECT x\r\n", "-ERR value is not an integer or out of range\r\n"},
      {"SELECT\r\n", "-ERR wrong number of arguments for 'select' command\r\n"},
      {"CLIENT SETINFO LIB-NAME redis-py\r\n", "+OK\r\n"},
      {"CLIENT SETINFO lib-ver 5.0.1\r\n", "+OK\r\n"},
      {"CLIENT SETINFO lib-ver '5 0'\r\n",
       "-ERR lib-ver cannot contain spaces, newlines or special characters.\r\n"},
      {"CLIENT SETINFO color blue\r\n", "-ERR Unrecognized option 'color'\r\n"},
      {"CLIENT SETINFO\r\n", "-ERR wrong number of arguments for 'client|setinfo' command\r\n"},
      {"CLIENT SETNAME me\r\nCLIENT GETNAME\r\nCLIENT SETNAME ''\r\nCLIENT GETNAME\r\n",
       "+OK\r\n$2\r\nme\r\n+OK\r\n$-1\r\n"},
      {"CLIENT SETNAME 'a b'\r\n",
       "-ERR Client names cannot contain spaces, newlines or special characters.\r\n"},
      {"CLIENT SETNAME\r\n", "-ERR wrong number of arguments for 'client|setname' command\r\n"},
      {"CLIENT ID\r\n", ":1\r\n"},
      {"CLIENT NO-EVICT ON\r\nCLIENT no-touch off\r\nCLIENT NO-EVICT x\r\n",
       "+OK\r\n+OK\r\n-ERR syntax error\r\n"},
      {"CLIENT MAINT_NOTIFICATIONS ON\r\n",
       "-ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.\r\n"},
      {"CLIENT\r\n", "-ERR wrong number of arguments for 'client' command\r\n"},
      {"COMMAND COUNT\r\n", ":34\r\n"},
      {"COMMAND DOCS nope post\r\n", "*0\r\n"},
      {"COMMAND INFO cl.throttle nope post\r\n",
       "*3\r\n*6\r\n$11\r\ncl.throttle\r\n:-5\r\n*2\r\n+write\r\n+fast\r\n:1\r\n:1\r\n:1\r\n$-"
       "1\r\n$-1\r\n"},
      {"COMMAND FOO\r\n", "-ERR unknown subcommand 'FOO'. Try COMMAND HELP.\r\n"},
      {"CONFIG GET save\r\n", "*2\r\n$4\r\nsave\r\n$0\r\n\r\n"},
      {"CONFIG GET appendonly nope SAVE\r\n",
       "*4\r\n$4\r\nsave\r\n$0\r\n\r\n$10\r\nappendonly\r\n$2\r\nno\r\n"},
      {"CONFIG GET maxmemory*\r\n",
       "*4\r\n$9\r\nmaxmemory\r\n$1\r\n0\r\n$16\r\nmaxmemory-policy\r\n$10\r\nnoeviction\r\n"},
      {"CONFIG GET nope\r\n", "*0\r\n"},
      {"CONFIG GET\r\n", "-ERR wrong number of arguments for 'config|get' command\r\n"},
      {"CONFIG SET save ''\r\n",
       "-ERR CONFIG SET is not supported: settings come from the server's configuration file, "
       "flags and "
       "environment\r\n"},
      {"CONFIG REWRITE\r\n", "-ERR unknown subcommand 'REWRITE'. Try CONFIG HELP.\r\n"},
      {"PING a b\r\n", "-ERR wrong number of arguments for 'ping' command\r\n"},
      {"ECHO\r\n", "-ERR wrong number of arguments for 'echo' command\r\n"},
  });
}

TEST(RespSession, CommandListsAllCommands) {
  World world;
  Conversation client(world);
  EXPECT_THAT(client.Send("COMMAND\r\n"),
              AllOf(StartsWith("*34\r\n*6\r\n$11\r\ncl.throttle\r\n"), Not(HasSubstr("host"))));
  EXPECT_EQ(client.Send("COMMAND\r\n"), client.Send("COMMAND INFO\r\n"));
}

TEST(RespSession, CommandDocsDescribeTheArguments) {
  World world;
  Conversation client(world);
  const std::string expected =
      "[cl.throttle, [summary, Takes from a token bucket, with the limit in the command, group, "
      "module, arguments, [[name, key, type, key], [name, max_burst, type, integer], [name, "
      "count_per_period, type, integer], [name, period_seconds, type, integer], [name, quantity, "
      "type, integer, flags, [optional]]]]]\n";
  std::string answered = Readable(client.Send("COMMAND DOCS cl.throttle\r\n"));
  std::erase(answered, '"');
  EXPECT_EQ(answered, expected);
  // Every command has a summary; those of Headgate have arguments too.
  wire::RespReader reader;
  size_t consumed = 0;
  const std::string docs = client.Send("COMMAND DOCS\r\n");
  ASSERT_EQ(reader.Read(docs, consumed), wire::RespReader::Step::kValue);
  EXPECT_EQ(consumed, docs.size());
  for (const CommandSpec& command : Commands()) {
    if (command.hidden) continue;
    const std::string one = client.Ask({"COMMAND", "DOCS", command.name});
    EXPECT_THAT(one, HasSubstr("summary")) << command.name;
    EXPECT_NE(docs.find(one.substr(4)), std::string::npos) << command.name;
    if (command.name.starts_with("hg.")) {
      EXPECT_THAT(one, HasSubstr("arguments")) << command.name;
    }
  }
}

TEST(RespSession, ResetForgetsWhatTheClientSaid) {
  World world;
  Conversation client(world);
  client.Send("HELLO 3 SETNAME me\r\n");
  EXPECT_EQ(client.Send("RESET\r\nCLIENT GETNAME\r\nCLIENT ID\r\n"), "+RESET\r\n$-1\r\n:1\r\n");
}

TEST(RespSession, UnknownCommandsAreRepeatedAsRedisDoes) {
  const std::string long_name(200, 'n');
  ExpectRows({
      {"FOO\r\n", "-ERR unknown command 'FOO', with args beginning with: \r\n"},
      {"GET a \"b\\r\\nc\"\r\n",
       "-ERR unknown command 'GET', with args beginning with: 'a' 'b  c' \r\n"},
      {long_name + "\r\n",
       "-ERR unknown command '" + long_name.substr(0, 128) + "', with args beginning with: \r\n"},
      {"x " + std::string(125, 'a') + " bcdef g\r\n",
       "-ERR unknown command 'x', with args beginning with: '" + std::string(125, 'a') + "' \r\n"},
      {"x " + std::string(120, 'a') + " bcdefghi j\r\n",
       "-ERR unknown command 'x', with args beginning with: '" + std::string(120, 'a') +
           "' 'bcdef' \r\n"},
  });
}

TEST(RespSession, AProtocolErrorClosesTheConnectionBehindTheAnswersBefore) {
  World world;
  Conversation client(world);
  EXPECT_EQ(client.Send("CL.THROTTLE k 4 1 1\r\n*1\r\n+PING\r\nPING\r\n"),
            "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:1\r\n-ERR Protocol error: expected '$', got '+'\r\n");
  EXPECT_TRUE(client.progress.close);
  EXPECT_TRUE(client.progress.protocol_error);
}

TEST(RespSession, AnHttpRequestEndsTheConversation) {
  for (const std::string request :
       {"POST / HTTP/1.1\r\nPING\r\n", "GET / HTTP/1.1\r\nHost: x\r\nPING\r\n"}) {
    World world;
    Conversation client(world);
    EXPECT_THAT(client.Send(request),
                AllOf(EndsWith("the connection is closed\r\n"), Not(HasSubstr("PONG"))));
    EXPECT_TRUE(client.progress.close);
    EXPECT_TRUE(client.progress.protocol_error);
  }
}

TEST(RespSession, AnswersTheSameHoweverTheBytesArrive) {
  const std::string stream =
      Conversation::Bytes({"HELLO", "3"}) + "CL.THROTTLE k 4 1 1\r\n" +
      Conversation::Bytes({"CL.THROTTLE", "k", "4", "1", "1", "5"}) +
      Conversation::Bytes({"cl.throttle", "k", "4", "x", "1"}) + "\r\n" +
      Conversation::Bytes({"ECHO", "a\r\nb"}) + "INFO persistence\r\nGET \"a b\"\r\n" +
      Conversation::Bytes({"CL.THROTTLE", "k", "4", "1", "1"}) + "PING 'a\r\nPING\r\n";
  const auto answers = [&](const std::vector<size_t>& ends) {
    World world;
    Conversation client(world);
    std::string output;
    size_t begin = 0;
    for (const size_t end : ends) {
      if (client.progress.close) break;
      output += client.Send(std::string_view(stream).substr(begin, end - begin));
      begin = end;
    }
    EXPECT_TRUE(client.progress.close);
    return output;
  };
  const std::string whole = answers({stream.size()});
  EXPECT_THAT(whole, EndsWith("-ERR Protocol error: unbalanced quotes in request\r\n"));
  std::vector<size_t> each;
  for (size_t i = 0; i <= stream.size(); ++i) {
    EXPECT_EQ(answers({i, stream.size()}), whole) << "split at " << i;
    each.push_back(i);
  }
  EXPECT_EQ(answers(each), whole);
}

TEST(RespSession, SaysWhereARequestIsHalfRead) {
  World world;
  Conversation client(world);
  client.Send("*1\r\n$4\r\nPI");
  EXPECT_TRUE(client.progress.mid_request);
  EXPECT_EQ(client.progress.consumed, 0u);
  EXPECT_EQ(client.Send("NG\r\n"), "+PONG\r\n");
  EXPECT_FALSE(client.progress.mid_request);
}

TEST(RespSession, PausesWhereSmallRequestsMakeMuchOutput) {
  World world;
  RespSession session(world.context, {});
  std::string input;
  for (int i = 0; i < 4000; ++i) input += "INFO\r\n";
  std::string output;
  std::string_view rest = input;
  int calls = 0;
  while (!rest.empty()) {
    std::string part;
    const auto progress = session.OnBytes(rest, part, base::Instant::FromNanos(0));
    EXPECT_LE(part.size(), net::Session::kOutputPauseBytes + 1024);
    rest.remove_prefix(progress.consumed);
    EXPECT_EQ(progress.more, !rest.empty());
    EXPECT_FALSE(progress.mid_request);
    output += part;
    ++calls;
  }
  EXPECT_GT(calls, 1);
  Conversation other(world);
  EXPECT_EQ(output.size(), 4000 * other.Send("INFO\r\n").size());
}

TEST(RespSession, OnDrainTheRequestUnderWayIsFinished) {
  World world;
  Conversation client(world);
  client.Send("*1\r\n$4\r\nPI");
  client.session().OnDrain();
  EXPECT_EQ(client.Send("NG"), "");
  EXPECT_FALSE(client.progress.close);
  EXPECT_EQ(client.Send("\r\n"), "+PONG\r\n");
  EXPECT_TRUE(client.progress.close);
}

}  // namespace session_test
}  // namespace headgate::front::resp
