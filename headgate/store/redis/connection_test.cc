// The conversation with a server, as dialogues: the test gives the server's messages, and checks
// what the connection sends and reports.
#include "headgate/store/redis/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace headgate::store::redis {
namespace connection_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using State = Connection::State;
using Action = Connection::Action;

constexpr std::string_view kPrimary =
    "$69\r\nrole:master\r\nmaster_replid:00000000000000ffaaaaaaaaaaaaaaaaaaaaaaaa\r\n\r\n";
constexpr std::string_view kReplica =
    "$68\r\nrole:slave\r\nmaster_replid:00000000000000ffaaaaaaaaaaaaaaaaaaaaaaaa\r\n\r\n";
constexpr std::string_view kServer =
    "$48\r\nrun_id:00000000000000eebb\r\nuptime_in_seconds:3\r\n\r\n";
constexpr std::string_view kMemory = "$43\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n\r\n";
constexpr std::string_view kEvicting =
    "$45\r\nmaxmemory:100\r\nmaxmemory_policy:allkeys-lru\r\n\r\n";
constexpr ServerIdentity kIdentity{
    .run = 0xee, .replication = 0xff, .age = std::chrono::seconds(2)};
constexpr std::string_view kHello = "%1\r\n$5\r\nproto\r\n:3\r\n";

// The test plays the server. `output` has the bytes that the connection sends, and `said` the
// events that it reports.
struct Dialogue final : Connection::User {
  explicit Dialogue(ConnectionSettings connection_settings = {})
      : settings(std::move(connection_settings)), connection(settings, *this, output, 1) {
    connection.Start(now);
    EXPECT_EQ(connection.TakeAction(), Action::kConnect);
  }
  static Dialogue& Ready(std::unique_ptr<Dialogue>& dialogue, ConnectionSettings settings = {}) {
    dialogue = std::make_unique<Dialogue>(std::move(settings));
    dialogue->HandshakeDone();
    EXPECT_EQ(dialogue->connection.state(), State::kReady);
    dialogue->Heard();
    return *dialogue;
  }
  void HandshakeDone(std::string_view role = kPrimary, std::string_view memory = kMemory) {
    connection.OnConnected(now);
    Says(kHello);
    Says(std::string(kServer) + std::string(role) + std::string(memory));
    output.clear();
  }

  void Says(std::string_view bytes) { connection.OnBytes(bytes, now); }
  void Passes(base::Duration time) {
    const base::BootTime end = now + time;
    while (connection.wake_at() <= end) {
      now = std::max(now, connection.wake_at());
      connection.OnTime(now);
    }
    now = end;
  }
  PendingCall& Call(const std::string& name, base::Duration timeout = 10ms) {
    PendingCall& call = *calls.emplace_back(std::make_unique<PendingCall>());
    call.key = name;
    call.body = name + ";";
    call.started = now;
    call.timeout = timeout;
    call.deadline = now + std::max(timeout, wait_max);
    connection.Send(call, now);
    return call;
  }
  std::string Sent() { return std::exchange(output, ""); }
  std::vector<std::string> Heard() { return std::exchange(said, {}); }

  void OnReply(PendingCall& call, const wire::RespValue& reply, base::BootTime) override {
    said.push_back(call.key + "=" + reply.ToString());
    if (retire_on_error && reply.is_error())
      connection.Retire(absl::UnavailableError("retired"), now);
  }
  void OnFailed(PendingCall& call, ConnectionEvent event, base::BootTime) override {
    said.push_back(call.key + " " + std::string(ActionFor(event).code));
  }
  void OnLateReply(base::BootTime) override { said.emplace_back("late"); }
  void OnFacts(const ServerFacts& server_facts, base::BootTime) override { facts = server_facts; }
  void OnReady(base::BootTime) override { said.emplace_back("ready"); }
  void OnDown(const absl::Status& why, base::BootTime) override {
    said.push_back("down: " + std::string(why.message()));
  }

  const ConnectionSettings settings;
  base::BootTime now = base::BootTime{0} + 1h;
  std::string output;
  std::vector<std::string> said;
  std::vector<std::unique_ptr<PendingCall>> calls;
  ServerFacts facts;
  bool retire_on_error = false;
  base::Duration wait_max{0};  // beyond the timeout of a call
  Connection connection;
};

// ---- HandshakeStep

TEST(HandshakeStep, SaysHelloAndAsksWhoIsThere) {
  Dialogue dialogue({.client_name = "headgate"});
  dialogue.connection.OnConnected(dialogue.now);
  EXPECT_EQ(dialogue.Sent(), "*4\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$7\r\nSETNAME\r\n$8\r\nheadgate\r\n");
  dialogue.Says(kHello);
  EXPECT_EQ(dialogue.Sent(),
            "*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n"
            "*2\r\n$4\r\nINFO\r\n$11\r\nreplication\r\n*2\r\n$4\r\nINFO\r\n$6\r\nmemory\r\n");
  dialogue.Says(kServer);
  dialogue.Says(kPrimary);
  EXPECT_EQ(dialogue.connection.state(), State::kHandshake);
  dialogue.Says(kMemory);
  EXPECT_THAT(dialogue.Heard(), ElementsAre("ready"));
  EXPECT_EQ(dialogue.facts, (ServerFacts{.identity = kIdentity, .eviction_policy = "allkeys-lru"}))
      << "without a bound of memory nothing is evicted";
}

TEST(HandshakeStep, LogsInAndSelects) {
  Dialogue dialogue({.user = "gate", .password = "secret", .database = 3});
  dialogue.connection.OnConnected(dialogue.now);
  EXPECT_THAT(dialogue.Sent(), HasSubstr("$4\r\nAUTH\r\n$4\r\ngate\r\n$6\r\nsecret\r\n"));
  dialogue.Says(kHello);
  EXPECT_THAT(dialogue.Sent(), HasSubstr("SELECT\r\n$1\r\n3\r\n"));
  dialogue.Says("+OK\r\n" + std::string(kServer) + std::string(kPrimary) + std::string(kMemory));
  EXPECT_EQ(dialogue.connection.state(), State::kReady);
}

TEST(HandshakeStep, FallsBackToTheOldProtocol) {
  for (const std::string_view refusal :
       {"-ERR unknown command `HELLO`, with args beginning with: `3` `AUTH` `default` `secret`\r\n",
        "-NOPROTO unsupported protocol version\r\n"}) {
    Dialogue dialogue({.password = "secret", .client_name = "n"});
    dialogue.connection.OnConnected(dialogue.now);
    dialogue.Sent();
    dialogue.Says(refusal);
    EXPECT_THAT(
        dialogue.Sent(),
        HasSubstr("*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n"));
    dialogue.Says("+OK\r\n+OK\r\n" + std::string(kServer) + std::string(kPrimary) +
                  std::string(kMemory));
    EXPECT_EQ(dialogue.connection.state(), State::kReady);
  }
}

TEST(HandshakeStep, ARefusalIsToldWithoutThePasswordAndNotTriedAgainForASecond) {
  for (const std::string_view refusal : {"-WRONGPASS invalid: secret\r\n", "-NOAUTH secret\r\n"}) {
    Dialogue dialogue({.user = "gate", .password = "secret"});
    dialogue.Call("a");
    dialogue.connection.OnConnected(dialogue.now);
    dialogue.Says(refusal);
    EXPECT_EQ(dialogue.connection.TakeAction(), Action::kDisconnect);
    const auto heard = dialogue.Heard();
    ASSERT_EQ(heard.size(), 2u);
    EXPECT_THAT(heard[0], HasSubstr("refuses the login of user 'gate'"));
    EXPECT_THAT(heard[0], Not(HasSubstr("secret")));
    EXPECT_EQ(heard[1], "a connect_refused");
    dialogue.Passes(999ms);
    EXPECT_EQ(dialogue.connection.TakeAction(), Action::kNone);
    dialogue.Passes(1ms);
    EXPECT_EQ(dialogue.connection.TakeAction(), Action::kConnect);
  }
}

TEST(HandshakeStep, EachConnectionTakesThePasswordAsItIs) {
  const auto password = std::make_shared<std::string>("old");
  Dialogue dialogue({.password = base::Secret([password] { return *password; })});
  dialogue.connection.OnConnected(dialogue.now);
  EXPECT_THAT(dialogue.Sent(), HasSubstr("$3\r\nold\r\n"));
  dialogue.Says("-WRONGPASS invalid\r\n");
  *password = "new";
  dialogue.Passes(1s);
  dialogue.Sent();
  dialogue.connection.OnConnected(dialogue.now);
  EXPECT_THAT(dialogue.Sent(), HasSubstr("$3\r\nnew\r\n"));
}

// Redis sends it as soon as a client connects, and closes the connection.
TEST(HandshakeStep, ProtectedModeHasAHintOfItsOwn) {
  Dialogue dialogue;
  dialogue.connection.OnConnected(dialogue.now);
  dialogue.Says("-DENIED Redis is running in protected mode because …\r\n");
  const auto heard = dialogue.Heard();
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_THAT(heard[0], HasSubstr("it is in protected mode, and answers only its own machine"));
}

TEST(HandshakeStep, RefusesToWriteToAReplica) {
  Dialogue dialogue;
  dialogue.HandshakeDone(kReplica);
  EXPECT_EQ(dialogue.connection.state(), State::kDown);
  EXPECT_THAT(dialogue.Heard(), ElementsAre("down: it is a replica"));
  Dialogue guide({.replica_ok = true});
  guide.HandshakeDone(kReplica);
  EXPECT_EQ(guide.connection.state(), State::kReady) << "it knows where its cluster's slots are";
}

TEST(HandshakeStep, AStrictStoreDoesNotTakeAPolicyThatEvicts) {
  Dialogue strict({.strict_store = true});
  strict.Call("a");
  strict.HandshakeDone(kPrimary, kEvicting);
  EXPECT_THAT(strict.Heard(),
              ElementsAre(HasSubstr("allkeys-lru may delete live limits"), "a store_refused"));
  Dialogue other;
  other.HandshakeDone(kPrimary, kEvicting);
  EXPECT_TRUE(other.facts.may_evict);
  EXPECT_EQ(other.connection.state(), State::kReady);
}

TEST(HandshakeStep, GoesOnWithoutWhatItMayNotSeeUnlessTheStoreIsStrict) {
  for (const std::string_view silence : {"-NOPERM no\r\n", "-ERR unknown command 'INFO'\r\n",
                                         "$0\r\n\r\n", "$17\r\nmaxmemory:100\r\n\r\n\r\n"}) {
    Dialogue dialogue;
    dialogue.HandshakeDone(kPrimary, silence);
    EXPECT_EQ(dialogue.connection.state(), State::kReady) << silence;
    EXPECT_EQ(dialogue.facts, (ServerFacts{.identity = kIdentity, .may_evict = true})) << silence;
    Dialogue strict({.strict_store = true});
    strict.Call("a");
    strict.HandshakeDone(kPrimary, silence);
    EXPECT_THAT(strict.Heard(),
                ElementsAre(HasSubstr("INFO memory does not show"), "a store_refused"));
  }
}

TEST(HandshakeStep, SaysWhichDatabaseThereIsNot) {
  Dialogue dialogue({.database = 99});
  dialogue.connection.OnConnected(dialogue.now);
  dialogue.Says(kHello);
  dialogue.Says("-ERR DB index is out of range\r\n");
  EXPECT_THAT(dialogue.Heard(),
              ElementsAre("down: it has no database 99 (ERR DB index is out of range)"));
}

TEST(HandshakeStep, HasAnEnd) {
  Dialogue dialogue;
  dialogue.connection.OnConnected(dialogue.now);
  dialogue.Passes(50ms);
  EXPECT_EQ(dialogue.connection.TakeAction(), Action::kDisconnect);
  EXPECT_THAT(dialogue.Heard(), ElementsAre("down: it connected, and did not say hello in time"));
}

TEST(HandshakeStep, TheHandshakeOfASentinelIsShort) {
  Dialogue dialogue({.client_name = "n", .sentinel = true});
  dialogue.connection.OnConnected(dialogue.now);
  dialogue.Says(kHello);
  EXPECT_EQ(dialogue.connection.state(), State::kReady);
  Dialogue old({.client_name = "n", .sentinel = true});
  old.connection.OnConnected(old.now);
  old.Says("-ERR unknown command\r\n");
  old.Says("+OK\r\n");
  EXPECT_EQ(old.connection.state(), State::kReady);
}

// ---- Calls

TEST(Calls, AreAnsweredInTheirOrderHoweverTheBytesCome) {
  std::unique_ptr<Dialogue> owner;
  Dialogue& dialogue = Dialogue::Ready(owner);
  dialogue.Call("a");
  dialogue.Call("b");
  dialogue.Call("c");
  EXPECT_EQ(dialogue.Sent(), "a;b;c;");
  const std::string replies = ":1\r\n$2\r\nhi\r\n*2\r\n:1\r\n:2\r\n";
  for (const char c : replies) dialogue.Says(std::string_view(&c, 1));
  EXPECT_THAT(dialogue.Heard(), ElementsAre("a=1", "b=\"hi\"", "c=[1, 2]"));
}

TEST(Calls, WaitForTheConnectionAndForRoomOnIt) {
  Dialogue dialogue({.in_flight_max = 2, .waiting_max = 3});
  for (const char* name : {"a", "b", "c", "d"}) dialogue.Call(name);
  EXPECT_THAT(dialogue.Heard(), ElementsAre("d queue_full"));
  dialogue.connection.OnConnected(dialogue.now);
  dialogue.Says(kHello);
  dialogue.Sent();
  dialogue.Says(std::string(kServer) + std::string(kPrimary) + std::string(kMemory));
  EXPECT_EQ(dialogue.Sent(), "a;b;");
  dialogue.Says(":1\r\n");
  EXPECT_EQ(dialogue.Sent(), "c;");
}

TEST(Calls, ALateReplyIsDroppedInItsPlace) {
  std::unique_ptr<Dialogue> owner;
  Dialogue& dialogue = Dialogue::Ready(owner);
  dialogue.Call("a", 10ms);
  dialogue.Call("b", 20ms);
  dialogue.Passes(10ms);
  EXPECT_THAT(dialogue.Heard(), ElementsAre("a reply_timeout"));
  dialogue.Says(":1\r\n:2\r\n");
  EXPECT_THAT(dialogue.Heard(), ElementsAre("late", "b=2"));
  EXPECT_EQ(dialogue.connection.late_replies(), 1u);
}

TEST(Calls, ABurstIsWorkedOffWhileTheServerAnswers) {
  std::unique_ptr<Dialogue> owner;
  Dialogue& dialogue = Dialogue::Ready(owner);
  dialogue.wait_max = 250ms;
  for (int i = 0; i < 1200; ++i) dialogue.Call("a", 10ms);
  // Ten answers each 2 ms: 240 ms for all.
  for (int i = 0; i < 120; ++i) {
    dialogue.Passes(2ms);
    std::string replies;
    for (int k = 0; k < 10; ++k) replies += ":1\r\n";
    dialogue.Says(replies);
  }
  const std::vector<std::string> heard = dialogue.Heard();
  EXPECT_EQ(std::count(heard.begin(), heard.end(), "a=1"), 1200);
}

TEST(Calls, OfASilentServerAreGivenUpAfterTheTimeoutAndTheWindowStays) {
  std::unique_ptr<Dialogue> owner;
  Dialogue& dialogue = Dialogue::Ready(owner);
  dialogue.wait_max = 250ms;
  for (int pause = 0; pause < 20; ++pause) {
    for (int i = 0; i < 3; ++i) dialogue.Call("a", 10ms);
    dialogue.Passes(9ms);
    EXPECT_THAT(dialogue.Heard(), IsEmpty());
    dialogue.Passes(1ms);
    EXPECT_THAT(dialogue.Heard(),
                ElementsAre("a reply_timeout", "a reply_timeout", "a reply_timeout"));
    dialogue.Says(":1\r\n:1\r\n:1\r\n");
    EXPECT_THAT(dialogue.Heard(), ElementsAre("late", "late", "late"));
    dialogue.Passes(61s);
  }
  EXPECT_EQ(dialogue.connection.window(), 512u) << "a silence does not show that fewer fit";
}

TEST(Calls, AnAnswerThatIsThereWhenThisProcessWakesIsUsed) {
  std::unique_ptr<Dialogue> owner;
  Dialogue& dialogue = Dialogue::Ready(owner);
  dialogue.Call("a", 10ms);
  dialogue.now += 80ms;
  EXPECT_TRUE(dialogue.connection.EndsCalls(dialogue.now)) << "so its owner reads first";
  dialogue.Says(":1\r\n");
  dialogue.connection.OnTime(dialogue.now);
  EXPECT_THAT(dialogue.Heard(), ElementsAre("a=1"));
}

TEST(Calls, TheTimeInWhichThisProcessDidNotRunIsNotTheServers) {
  std::unique_ptr<Dialogue> owner;
  Dialogue& dialogue = Dialogue::Ready(owner);
  dialogue.Call("a", 10ms);
  // It is written 30 ms late.
  dialogue.now += 30ms;
  dialogue.connection.OnWritten(dialogue.now);
  dialogue.Passes(9ms);
  EXPECT_THAT(dialogue.Heard(), IsEmpty());
  // The 10 ms are over while this process stands still for 41 ms: it wakes 40 ms late.
  dialogue.now += 41ms;
  dialogue.connection.OnTime(dialogue.now);
  EXPECT_THAT(dialogue.Heard(), ElementsAre("a reply_timeout")) << "the server had its 10 ms";
}

TEST(Calls, APauseOfThisProcessBreaksNoConnection) {
  std::unique_ptr<Dialogue> owner;
  Dialogue& dialogue = Dialogue::Ready(owner);
  dialogue.Call("a", 10ms);
  dialogue.now += 3s;
  dialogue.connection.OnTime(dialogue.now);
  EXPECT_EQ(dialogue.connection.state(), State::kReady);
}

TEST(Calls, AreGivenUpInTimeAlsoWhereTheyWereNeverSent) {
  Dialogue dialogue;
  dialogue.Call("a", 10ms);
  dialogue.Passes(9ms);
  EXPECT_THAT(dialogue.Heard(), IsEmpty());
  dialogue.Passes(1ms);
  EXPECT_THAT(dialogue.Heard(), ElementsAre("a queue_timeout"));
}

TEST(Calls, ABurstIsSentAsItIsAnsweredInTime) {
  std::unique_ptr<Dialogue> owner;
  Dialogue& dialogue = Dialogue::Ready(owner, {.waiting_max = 4096});
  for (int i = 0; i < 2000; ++i) dialogue.Call("a");
  EXPECT_EQ(dialogue.connection.in_flight(), 512u);
  const auto answer = [&](int count) {
    std::string replies;
    for (int i = 0; i < count; ++i) replies += ":1\r\n";
    dialogue.Says(replies);
  };
  dialogue.Passes(2ms);
  answer(512);
  EXPECT_EQ(dialogue.connection.in_flight(), 1024u);
  dialogue.Passes(6ms);
  answer(1024);
  EXPECT_EQ(dialogue.connection.in_flight(), 1u) << "in 2 ms the others would not be answered";
  std::vector<std::string> heard = dialogue.Heard();
  EXPECT_EQ(std::count(heard.begin(), heard.end(), "a out_of_time"), 2000 - 512 - 1024 - 1)
      << "the store is at work: no failures";
  dialogue.Passes(2ms);
  EXPECT_THAT(dialogue.Heard(), ElementsAre("a reply_timeout"));
  EXPECT_EQ(dialogue.connection.window(), 512u);
}

TEST(Calls, ThatCannotBeAnsweredInTimeAreNotSent) {
  std::unique_ptr<Dialogue> owner;
  Dialogue& dialogue = Dialogue::Ready(owner, {.in_flight_max = 2});
  for (int i = 0; i < 64; ++i) {
    dialogue.Call("a");
    dialogue.Passes(5ms);
    dialogue.Says(":1\r\n");
  }
  for (const char* name : {"a", "b", "c", "d"}) dialogue.Call(name);
  dialogue.Heard();
  dialogue.Sent();
  dialogue.Passes(6ms);
  dialogue.Says(":1\r\n");
  EXPECT_THAT(dialogue.Heard(), ElementsAre("a=1", "c out_of_time", "d out_of_time"));
  EXPECT_THAT(dialogue.Sent(), IsEmpty());
  dialogue.Says(":1\r\n");
  dialogue.Call("e", 1ms);
  EXPECT_EQ(dialogue.Sent(), "e;") << "nothing is before it";
}

TEST(Calls, ThatWaitWhileNothingIsAnsweredCountAsFailures) {
  std::unique_ptr<Dialogue> owner;
  Dialogue& dialogue = Dialogue::Ready(owner, {.in_flight_max = 1});
  dialogue.Call("a", 10ms);
  dialogue.Passes(1ms);
  dialogue.Call("b", 10ms);
  dialogue.Passes(10ms);
  EXPECT_THAT(dialogue.Heard(), ElementsAre("a reply_timeout", "b queue_timeout"));
}

TEST(Calls, AnOverdueReplyEndsTheConnection) {
  std::unique_ptr<Dialogue> owner;
  Dialogue& dialogue = Dialogue::Ready(owner);
  dialogue.Call("a", 10ms);
  dialogue.Passes(999ms);
  dialogue.Call("b", 10ms);
  dialogue.Passes(1ms);
  EXPECT_THAT(dialogue.Heard(), ElementsAre("a reply_timeout", "b closed",
                                            "down: it has not answered within the timeout"));
  EXPECT_EQ(dialogue.connection.TakeAction(), Action::kDisconnect);
}

TEST(Calls, ThatWereSentMayHaveBeenDoneWhenTheConnectionEnds) {
  std::unique_ptr<Dialogue> owner;
  Dialogue& dialogue = Dialogue::Ready(owner, {.in_flight_max = 2});
  for (const char* name : {"a", "b", "c"}) dialogue.Call(name, 1s);
  dialogue.Says(":1");
  dialogue.connection.OnClosed(absl::UnavailableError("reset"), dialogue.now);
  EXPECT_THAT(dialogue.Heard(), ElementsAre("a closed", "b closed", "down: reset"));
  EXPECT_THAT(dialogue.Sent(), IsEmpty());
  dialogue.Passes(4ms);
  EXPECT_EQ(dialogue.connection.TakeAction(), Action::kConnect) << "soon, where it had worked";
  dialogue.connection.OnConnected(dialogue.now);
  dialogue.Says(kHello);
  dialogue.Sent();
  dialogue.Says(std::string(kServer) + std::string(kPrimary) + std::string(kMemory));
  EXPECT_EQ(dialogue.Sent(), "c;")
      << "what was never sent goes now; what may have been done never again";
}

TEST(Calls, FailAtOnceWhereNobodyIsThere) {
  Dialogue dialogue;
  dialogue.Call("a");
  dialogue.connection.OnClosed(absl::UnavailableError("refused"), dialogue.now);
  dialogue.Call("b");
  EXPECT_THAT(dialogue.Heard(),
              ElementsAre("down: refused", "a connect_refused", "b connect_refused"));
}

TEST(Calls, RepliesThatCannotBeReadEndTheConnection) {
  for (const std::string_view bytes : {"?what\r\n", "$-5\r\n", "*1000000000\r\n", ":1\r\n:2\r\n"}) {
    std::unique_ptr<Dialogue> owner;
    Dialogue& dialogue = Dialogue::Ready(owner);
    dialogue.Call("a");
    dialogue.Says(bytes);
    EXPECT_EQ(dialogue.connection.state(), State::kDown) << bytes;
    EXPECT_THAT(dialogue.Heard().back(), HasSubstr("down: "));
  }
}

TEST(Calls, PushesAreNoAnswers) {
  std::unique_ptr<Dialogue> owner;
  Dialogue& dialogue = Dialogue::Ready(owner);
  dialogue.Call("a");
  dialogue.Says(">2\r\n+invalidate\r\n_\r\n:1\r\n");
  EXPECT_THAT(dialogue.Heard(), ElementsAre("a=1"));
}

TEST(Calls, AskingGoesBeforeAndItsAnswerIsNobodys) {
  std::unique_ptr<Dialogue> owner;
  Dialogue& dialogue = Dialogue::Ready(owner);
  PendingCall call;
  call.key = "a";
  call.body = "a;";
  call.asking = true;
  call.deadline = dialogue.now + 10ms;
  dialogue.connection.Send(call, dialogue.now);
  EXPECT_EQ(dialogue.Sent(), "*1\r\n$6\r\nASKING\r\na;");
  dialogue.Says("+OK\r\n:1\r\n");
  EXPECT_THAT(dialogue.Heard(), ElementsAre("a=1"));
}

TEST(Calls, ARetiringConnectionAnswersItsCallsAndOthersWaitForTheNext) {
  std::unique_ptr<Dialogue> owner;
  Dialogue& dialogue = Dialogue::Ready(owner);
  dialogue.retire_on_error = true;
  dialogue.Call("a", 1s);
  dialogue.Call("b", 1s);
  dialogue.Says("-READONLY no\r\n");
  dialogue.Call("c", 1s);
  dialogue.Says("-READONLY no\r\n");
  EXPECT_THAT(dialogue.Heard(), ElementsAre("a=-READONLY no", "b=-READONLY no", "down: retired"));
  dialogue.Passes(4ms);
  dialogue.HandshakeDone();
  EXPECT_EQ(dialogue.connection.in_flight(), 1u);
}

// ---- Coming back

TEST(Resting, EndsWhenAllIsAnsweredAndBeginsAnewWhenItIsAsked) {
  std::unique_ptr<Dialogue> owner;
  Dialogue& dialogue = Dialogue::Ready(owner);
  dialogue.Call("a", 1s);
  dialogue.connection.Rest(dialogue.now);
  EXPECT_EQ(dialogue.connection.state(), State::kReady);
  dialogue.Says(":1\r\n");
  EXPECT_THAT(dialogue.Heard(), ElementsAre("a=1", "down: it is not needed"));
  EXPECT_EQ(dialogue.connection.TakeAction(), Action::kDisconnect);
  dialogue.Passes(1h);
  EXPECT_EQ(dialogue.connection.TakeAction(), Action::kNone);
  dialogue.Call("b", 1s);
  EXPECT_EQ(dialogue.connection.TakeAction(), Action::kConnect);
  dialogue.connection.OnConnected(dialogue.now);
  dialogue.Says(kHello);
  dialogue.Sent();
  dialogue.Says(std::string(kServer) + std::string(kPrimary) + std::string(kMemory));
  EXPECT_EQ(dialogue.Sent(), "b;");
}

TEST(Resting, AsksNobodyWhoIsAway) {
  Dialogue dialogue;
  dialogue.connection.OnClosed(absl::UnavailableError("refused"), dialogue.now);
  dialogue.connection.Rest(dialogue.now);
  dialogue.Passes(1h);
  EXPECT_EQ(dialogue.connection.TakeAction(), Action::kNone);
}

TEST(Reconnecting, WaitsLongerEachTimeUpToABoundAndNeverAlike) {
  Dialogue dialogue({.reconnect_min = 50ms, .reconnect_max = 5s});
  std::vector<base::Duration> pauses;
  for (int i = 0; i < 12; ++i) {
    dialogue.connection.OnClosed(absl::UnavailableError("refused"), dialogue.now);
    pauses.push_back(dialogue.connection.wake_at() - dialogue.now);
    dialogue.Passes(pauses.back());
    ASSERT_EQ(dialogue.connection.TakeAction(), Action::kConnect);
  }
  base::Duration expected = 50ms;
  for (const base::Duration pause : pauses) {
    EXPECT_GE(pause, expected / 2);
    EXPECT_LE(pause, expected * 3 / 2);
    expected = std::min<base::Duration>(expected * 2, 5s);
  }
  EXPECT_NE(pauses[10], pauses[11]);
}

// A connection in its handshake has not worked yet.
TEST(Reconnecting, AServerThatGreetsAndClosesIsNotAskedAllTheTime) {
  Dialogue dialogue({.reconnect_min = 50ms, .reconnect_max = 2s});
  const base::BootTime begin = dialogue.now;
  int connections = 0;
  for (; dialogue.now - begin < 10s; ++connections) {
    dialogue.HandshakeDone();
    ASSERT_EQ(dialogue.connection.state(), State::kReady);
    dialogue.Call("a", 1s);
    dialogue.connection.OnClosed(absl::UnavailableError("closed"), dialogue.now);
    dialogue.Passes(dialogue.connection.wake_at() - dialogue.now);
  }
  EXPECT_LE(connections, 20);
  dialogue.HandshakeDone();
  dialogue.Call("a", 1s);
  dialogue.Says(":1\r\n");
  dialogue.connection.OnClosed(absl::UnavailableError("closed"), dialogue.now);
  EXPECT_LE(dialogue.connection.wake_at() - dialogue.now, 4ms) << "it has answered";
}

TEST(Reconnecting, AConnectionThatStoodForASecondIsMadeAnewAtOnce) {
  std::unique_ptr<Dialogue> owner;
  Dialogue& dialogue = Dialogue::Ready(owner);
  for (int i = 0; i < 5; ++i) {
    dialogue.Passes(1s);
    dialogue.connection.OnClosed(absl::UnavailableError("closed"), dialogue.now);
    EXPECT_LE(dialogue.connection.wake_at() - dialogue.now, 4ms);
    dialogue.Passes(4ms);
    dialogue.HandshakeDone();
  }
}

}  // namespace connection_test
}  // namespace headgate::store::redis
