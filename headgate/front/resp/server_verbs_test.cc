// Queries of clients and tools about the server and its clients. The texts are those of Redis 7.
#include "headgate/front/resp/server_verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "headgate/front/resp/conversation.h"

namespace headgate::front::resp {
namespace server_verbs_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const net::Peer kFarAway{.loopback = false, .address = "10.0.0.7:50000"};
const net::Peer kNear{.loopback = true, .address = "127.0.0.1:40000"};

// A server with non-zero figures.
struct CountingWorld : World {
  explicit CountingWorld(access::AccessOptions options = {})
      : World(std::move(options)),
        counting({.checker = checker, .access = access, .version = "1.2.3", .figures = [] {
                    return ServerFigures{.uptime = std::chrono::hours(25),
                                         .memory_bytes = 12'345'678,
                                         .connections_open = 3,
                                         .connections_max = 10'000,
                                         .connections_accepted = 17,
                                         .connections_refused = 2,
                                         .commands = 4711,
                                         .buckets = 42};
                  }}) {}
  Context counting;
};

std::string Ask(Context& context, const net::Peer& peer, std::string_view bytes) {
  RespSession session(context, peer);
  std::string output;
  session.OnBytes(bytes, output, base::Instant::FromNanos(1'790'000'000'000'000'000));
  return output;
}

TEST(Info, SaysThatNothingIsLoading) {
  World world;
  Conversation client(world);
  const std::string all = client.Send("INFO\r\n");
  EXPECT_THAT(all, AllOf(HasSubstr("\r\nredis_version:7.2.0\r\n"),
                         HasSubstr("\r\nheadgate_version:1.2.3\r\n"),
                         HasSubstr("\r\nloading:0\r\n"), HasSubstr("\r\nrole:master\r\n")));
  EXPECT_EQ(client.Send("INFO everything\r\n"), all);
  const std::string persistence =
      "# Persistence\r\nloading:0\r\nrdb_bgsave_in_progress:0\r\naof_rewrite_in_progress:0\r\n";
  EXPECT_EQ(client.Send("INFO Persistence\r\n"),
            fmt::format("${}\r\n{}\r\n", persistence.size(), persistence));
  EXPECT_EQ(client.Send("INFO nope\r\n"), "$0\r\n\r\n");
  client.Send("HELLO 3\r\n");
  EXPECT_EQ(client.Send("INFO persistence\r\n"),
            fmt::format("={}\r\ntxt:{}\r\n", persistence.size() + 4, persistence));
}

// The fields that redis-cli --stat reads.
TEST(Info, CountsForThoseWhoMaySeeIt) {
  CountingWorld world;
  const std::string all = Ask(world.counting, kNear, "INFO\r\n");
  for (const char* line :
       {"uptime_in_seconds:90000", "uptime_in_days:1", "connected_clients:3", "maxclients:10000",
        "blocked_clients:0", "used_memory:12345678", "rdb_bgsave_in_progress:0",
        "total_connections_received:17", "total_commands_processed:4711", "rejected_connections:2",
        "db0:keys=42,expires=42,avg_ttl=0"}) {
    EXPECT_THAT(all, HasSubstr("\r\n" + std::string(line) + "\r\n"));
  }
  EXPECT_EQ(Ask(world.counting, kNear, "INFO keyspace\r\n"),
            "$46\r\n# Keyspace\r\ndb0:keys=42,expires=42,avg_ttl=0\r\n\r\n");
}

TEST(Info, CountsNothingForOthers) {
  const access::AccessOptions locked{.credential = "secret"};
  for (const auto& access : {std::optional(locked), std::optional<access::AccessOptions>()}) {
    CountingWorld world(access.value_or(access::AccessOptions{}));
    const std::string info = Ask(world.counting, kFarAway, "INFO all\r\n");
    EXPECT_THAT(info, AllOf(HasSubstr("loading:0"), HasSubstr("redis_version:")));
    for (const char* field : {"uptime", "clients", "memory", "commands", "connections", "keys"}) {
      EXPECT_THAT(info, Not(HasSubstr(field)));
    }
  }
  CountingWorld world(locked);
  EXPECT_THAT(Ask(world.counting, kNear, "INFO\r\n"), Not(HasSubstr("connected_clients")));
  EXPECT_THAT(Ask(world.counting, kFarAway, "AUTH secret\r\nINFO\r\n"),
              HasSubstr("connected_clients:3"));
}

TEST(ServerVerbs, DbSizeAndRole) {
  CountingWorld world;
  EXPECT_EQ(Ask(world.counting, kNear, "DBSIZE\r\n"), ":42\r\n");
  EXPECT_THAT(Ask(world.counting, kFarAway, "DBSIZE\r\n"),
              StartsWith("-NOPERM 'dbsize' is for clients on the"));
  EXPECT_EQ(Ask(world.counting, kFarAway, "ROLE\r\n"), "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n");
}

// The time of day was two hours behind and has been set. Decisions do not follow at once.
TEST(ServerVerbs, TimeIsTheTimeOfDay) {
  World world;
  base::ManualClock clock{base::WallTime::FromNanos(1'790'000'000'123'456'789)};
  Context context(
      {.checker = world.checker, .access = world.access, .version = "", .clock = &clock});
  EXPECT_EQ(Ask(context, kNear, "TIME\r\n"), "*2\r\n$10\r\n1790000000\r\n$6\r\n123456\r\n");
  clock.StepWall(std::chrono::hours(2));
  EXPECT_EQ(Ask(context, kNear, "TIME\r\n"), "*2\r\n$10\r\n1790007200\r\n$6\r\n123456\r\n");
}

// ---- CLIENT

TEST(Client, HasANumberOfItsOwn) {
  World world;
  Conversation first(world), second(world);
  EXPECT_EQ(first.Send("CLIENT ID\r\n"), ":1\r\n");
  EXPECT_EQ(second.Send("CLIENT ID\r\n"), ":2\r\n");
}

TEST(Client, InfoIsWhatTheClientHasSaidAndDone) {
  World world;
  Conversation client(world, kFarAway);
  client.Send(
      "HELLO 3 SETNAME me\r\nCLIENT SETINFO LIB-NAME mine\r\nCLIENT SETINFO LIB-VER 1.0\r\n");
  client.now = client.now + std::chrono::seconds(90);
  client.Send("PING\r\n");
  client.now = client.now + std::chrono::seconds(5);
  const std::string line =
      "id=1 addr=10.0.0.7:50000 laddr= fd=-1 name=me age=95 idle=0 flags=N db=0 sub=0 psub=0 "
      "ssub=0 multi=-1 qbuf=0 "
      "qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r "
      "cmd=client user=default "
      "redir=-1 resp=3 lib-name=mine lib-ver=1.0\n";
  EXPECT_EQ(client.Send("CLIENT INFO\r\n"),
            fmt::format("={}\r\ntxt:{}\r\n", line.size() + 4, line));
  EXPECT_EQ(client.Send("CLIENT INFO x\r\n"),
            "-ERR wrong number of arguments for 'client|info' command\r\n");
}

TEST(Client, ListHasAllClientsAndOnlyWhileTheyAreThere) {
  World world;
  Conversation first(world, kNear);
  first.Send("CLIENT SETNAME first\r\n");
  {
    Conversation second(world, kFarAway);
    second.Send("CLIENT SETNAME second\r\nPING\r\n");
    first.now = first.now + std::chrono::seconds(7);
    EXPECT_THAT(first.Send("CLIENT LIST\r\n"),
                AllOf(HasSubstr("id=1 addr=127.0.0.1:40000 laddr= fd=-1 name=first age=7 idle=0"),
                      HasSubstr("\nid=2 addr=10.0.0.7:50000 laddr= fd=-1 name=second age=7 idle=7"),
                      HasSubstr(" cmd=ping ")));
    EXPECT_THAT(first.Send("CLIENT LIST ID 2 9\r\n"),
                AllOf(HasSubstr("id=2 "), Not(HasSubstr("id=1 "))));
    EXPECT_THAT(first.Send("CLIENT LIST TYPE normal\r\n"), HasSubstr("id=2 "));
    EXPECT_EQ(first.Send("CLIENT LIST TYPE pubsub\r\n"), "$0\r\n\r\n");
  }
  EXPECT_THAT(first.Send("CLIENT LIST\r\n"), Not(HasSubstr("second")));
  EXPECT_EQ(first.Send("CLIENT LIST ID 9\r\n"), "$0\r\n\r\n");
  EXPECT_EQ(
      first.Send("CLIENT LIST ID x\r\nCLIENT LIST ID 0\r\nCLIENT LIST TYPE x\r\nCLIENT LIST x\r\n"),
      "-ERR Invalid client ID\r\n-ERR Invalid client ID\r\n-ERR Unknown client type 'x'\r\n"
      "-ERR syntax error\r\n");
}

TEST(Client, ListIsBoundedAndTheOthersAreFoundByTheirNumber) {
  ClientList list;
  std::vector<std::unique_ptr<ClientList::Registration>> places;
  for (uint64_t id = 1; id <= ClientList::kListedMax + 1; ++id) {
    places.push_back(
        std::make_unique<ClientList::Registration>(list, ClientState{.id = id}, "unix"));
  }
  const std::string lines = list.Lines({}, base::Instant{0});
  EXPECT_EQ(static_cast<size_t>(std::count(lines.begin(), lines.end(), '\n')),
            ClientList::kListedMax);
  const uint64_t last = ClientList::kListedMax + 1;
  EXPECT_THAT(list.Lines({&last, 1}, base::Instant{0}), StartsWith("id=10001 "));
}

TEST(Client, ListIsForThoseWhoMayUseState) {
  World locked({.credential = "secret"});
  Conversation stranger(locked, kNear);
  EXPECT_EQ(stranger.Send("CLIENT LIST\r\n"), "-NOAUTH Authentication required.\r\n");
  EXPECT_THAT(stranger.Send("CLIENT INFO\r\n"), HasSubstr("addr=127.0.0.1:40000"));
  EXPECT_THAT(stranger.Send("AUTH secret\r\nCLIENT LIST\r\n"), HasSubstr("id=1 "));
  World open;
  Conversation far(open, kFarAway);
  EXPECT_THAT(far.Send("CLIENT LIST\r\n"),
              StartsWith("-NOPERM 'client|list' is for clients on the server's own"));
}

// A client-side cache turns tracking on when it connects; Headgate serves nothing that it could
// cache.
TEST(Client, TrackingIsTakenAndNothingIsEverInvalidated) {
  World world;
  Conversation client(world);
  EXPECT_EQ(client.Send("CLIENT GETREDIR\r\nCLIENT TRACKING ON\r\nCLIENT GETREDIR\r\n"),
            ":-1\r\n+OK\r\n:0\r\n");
  EXPECT_EQ(
      client.Send("CLIENT TRACKINGINFO\r\n"),
      "*6\r\n$5\r\nflags\r\n*1\r\n$2\r\non\r\n$8\r\nredirect\r\n:0\r\n$8\r\nprefixes\r\n*0\r\n");
  EXPECT_THAT(client.Send("CLIENT INFO\r\n"),
              AllOf(HasSubstr(" flags=t "), HasSubstr(" redir=0 ")));
  EXPECT_EQ(client.Send("CLIENT TRACKING ON REDIRECT 5 PREFIX a PREFIX b BCAST OPTIN "
                        "NOLOOP\r\nCLIENT CACHING YES\r\n"),
            "+OK\r\n+OK\r\n");
  EXPECT_THAT(client.Send("RESET\r\nCLIENT INFO\r\n"), HasSubstr(" flags=N "));
  EXPECT_EQ(
      client.Send("CLIENT TRACKING\r\nCLIENT TRACKING maybe\r\nCLIENT TRACKING ON PREFIX\r\n"),
      "-ERR wrong number of arguments for 'client|tracking' command\r\n-ERR syntax error\r\n"
      "-ERR syntax error\r\n");
}

}  // namespace server_verbs_test
}  // namespace headgate::front::resp
