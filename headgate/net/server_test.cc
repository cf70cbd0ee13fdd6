// The server over real loopback sockets, on ports that the system chooses. The tests move the clock
// themselves. They wait for the server only by reading from its sockets, with a timeout.
#include "headgate/net/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "headgate/net/server_rig.h"

namespace headgate::net {
namespace server_test {

using namespace std::chrono_literals;

// "ask" waits until some connection on the same loop sends "tell".
struct Oracle {
  bool told = false;
  std::vector<std::function<void()>> wakers;
};

// A line protocol: "x\n" is answered by "x\n". A few words have special meanings.
class LineSession final : public Session {
 public:
  LineSession(std::string greeting, Oracle& oracle)
      : greeting_(std::move(greeting)), oracle_(oracle) {}

  Progress OnBytes(std::span<const char> input, std::string& output, base::Instant now) override {
    std::string_view text(input.data(), input.size());
    Progress progress;
    for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      const std::string_view line = text.substr(0, end);
      if (line == "ask" && !oracle_.told) {
        oracle_.wakers.push_back(wake_);
        progress.stop_reading = true;
        progress.waiting_since = now;
        return progress;
      }
      if (line == "tell") {
        oracle_.told = true;
        for (const auto& wake : oracle_.wakers) wake();
        oracle_.wakers.clear();
      }
      progress.consumed += end + 1;
      text.remove_prefix(end + 1);
      if (line == "big") {
        output.append(size_t{4} << 20, 'b');
        continue;
      }
      if (line == "one at a time") {
        output += "done\n";
        progress.more = text.find('\n') != std::string_view::npos;
        return progress;
      }
      if (line == "nonsense") {
        output += "error\n";
        progress.close = progress.protocol_error = true;
        return progress;
      }
      output += greeting_;
      output += line;
      output += '\n';
    }
    progress.mid_request = !text.empty();
    progress.close = drained_ && text.empty();
    return progress;
  }
  void OnGivenUp(GivenUp why, std::string& output, base::Instant) override {
    output += why == GivenUp::kIdle      ? "idle\n"
              : why == GivenUp::kTooSlow ? "too slow\n"
                                         : "no buffers\n";
  }
  void SetWaker(std::function<void()> wake) override { wake_ = std::move(wake); }
  void OnDrain() override {
    drained_ = true;
    greeting_ = "bye ";
  }

 private:
  std::string greeting_;
  Oracle& oracle_;
  std::function<void()> wake_;
  bool drained_ = false;
};

struct LineProtocol {
  // "?" could become "?x", a protocol that this server does not serve.
  SessionChoice Choose(std::span<const char> bytes, const Peer& peer, Room room) {
    const std::string_view text(bytes.data(), bytes.size());
    if (room == Room::kNone) return {.made = true, .refusal = "full house\n"};
    if (text == "?") return {};
    if (text.starts_with("?x")) return {.made = true, .refusal = "no x here\n"};
    return {.made = true,
            .session = std::make_unique<LineSession>(peer.loopback ? "" : "stranger ", oracle)};
  }

  Oracle oracle;  // for servers with one loop
};

struct TestServer : ServerRig<LineProtocol> {
  explicit TestServer(ServerOptions server_options = {}, std::string_view address = "127.0.0.1:0")
      : ServerRig(server_options, {}, address) {}
};

std::string Ask(BlockingClient& client, std::string_view line, std::string_view answer) {
  EXPECT_TRUE(client.Send(line).ok());
  return ReadBytes(client, answer.size());
}

// Whether the server closed without sending anything, in either of the two ways that a socket
// reports.
bool Closed(BlockingClient& client) {
  const auto rest = client.ReadSome();
  return rest.ok() ? rest->empty() : rest.status().code() == absl::StatusCode::kUnavailable;
}

TEST(Server, AnswersOnThePortThatItReports) {
  TestServer server;
  server.server->Start();
  EXPECT_NE(server.endpoint.port, 0);
  BlockingClient client = server.Connect();
  EXPECT_EQ(Ask(client, "hello\n", "hello\n"), "hello\n");
  EXPECT_EQ(Ask(client, "again\n", "again\n"), "again\n");
}

TEST(Server, AnswersWhatArrivedTogetherTogetherAndWaitsForTheRest) {
  TestServer server;
  server.server->Start();
  BlockingClient client = server.Connect();
  EXPECT_EQ(Ask(client, "one\ntwo\nthr", "one\ntwo\n"), "one\ntwo\n");
  EXPECT_EQ(Ask(client, "ee\n", "three\n"), "three\n");
}

TEST(Server, CallsASessionAgainThatHasMore) {
  TestServer server;
  server.server->Start();
  BlockingClient client = server.Connect();
  EXPECT_EQ(Ask(client, "one at a time\none at a time\none at a time\n", "done\ndone\ndone\n"),
            "done\ndone\ndone\n");
}

TEST(Server, ASessionThatWaitsIsAskedAgainWhenItSaysSoAndKeepsTheOrder) {
  TestServer server;
  server.server->Start();
  BlockingClient client = server.Connect();
  BlockingClient other = server.Connect();
  // Requests after the waiting one are answered after it.
  EXPECT_EQ(Ask(client, "one\nask\ntwo\n", "one\n"), "one\n");
  EXPECT_EQ(Ask(other, "hello\n", "hello\n"), "hello\n");
  EXPECT_TRUE(client.Send("three\n").ok());
  EXPECT_EQ(Ask(other, "tell\n", "tell\n"), "tell\n");
  EXPECT_EQ(ReadBytes(client, 14), "ask\ntwo\nthree\n");
}

// Lines that follow a waiting request, and their answers once the wait is over.
struct Behind {
  std::string_view lines;
  std::string answers;
  bool closes = false;
};

TEST(Server, AfterAWaitTheConnectionGoesOnAsAfterAnyRequest) {
  const Behind cases[] = {
      {.lines = "", .answers = "ask\n"},
      {.lines = "two\n", .answers = "ask\ntwo\n"},
      {.lines = "big\n", .answers = "ask\n" + std::string(size_t{4} << 20, 'b')},
      {.lines = "one at a time\none at a time\n", .answers = "ask\ndone\ndone\n"},
      {.lines = "nonsense\n", .answers = "ask\nerror\n", .closes = true},
  };
  for (const bool says_more : {false, true}) {
    for (const Behind& behind : cases) {
      TestServer server;
      server.server->Start();
      BlockingClient client = server.Connect();
      BlockingClient other = server.Connect();
      EXPECT_TRUE(client.Send("ask\n" + std::string(behind.lines)).ok());
      if (says_more && !behind.closes) {
        EXPECT_TRUE(client.Send("more\n").ok());
      }
      EXPECT_EQ(Ask(other, "hello\n", "hello\n"), "hello\n");
      EXPECT_EQ(Ask(other, "tell\n", "tell\n"), "tell\n");
      const std::string answers = behind.answers + (says_more && !behind.closes ? "more\n" : "");
      EXPECT_EQ(ReadBytes(client, answers.size()), answers) << behind.lines;
      if (behind.closes) {
        EXPECT_TRUE(Closed(client));
      } else {
        EXPECT_EQ(Ask(client, "again\n", "again\n"), "again\n") << behind.lines;
      }
    }
  }
}

TEST(Server, AClientThatLeavesBeforeItsAnswerIsForgotten) {
  TestServer server;
  server.server->Start();
  BlockingClient other = server.Connect();
  {
    BlockingClient client = server.Connect();
    EXPECT_EQ(Ask(client, "one\nask\n", "one\n"), "one\n");
  }
  EXPECT_EQ(Ask(other, "hello\n", "hello\n"), "hello\n");
  EXPECT_EQ(Ask(other, "tell\n", "tell\n"), "tell\n");
  while (server.server->counters().connections_open > 1) EXPECT_EQ(Ask(other, "x\n", "x\n"), "x\n");
}

TEST(Server, ADrainingServerFirstAnswersWaitingRequests) {
  TestServer server;
  server.server->Start();
  BlockingClient client = server.Connect();
  BlockingClient other = server.Connect();
  EXPECT_EQ(Ask(client, "one\nask\n", "one\n"), "one\n");
  EXPECT_EQ(Ask(other, "tell\nbegins", "tell\n"), "tell\n");
  std::thread drain([&] { EXPECT_TRUE(server.server->Drain(10s)); });
  // The answer may come before the drain or after it has begun.
  EXPECT_THAT(ReadBytes(client, 8), ::testing::AnyOf("ask\n", "bye ask\n"));
  EXPECT_TRUE(Closed(client));
  EXPECT_TRUE(other.Send("\n").ok());
  drain.join();
}

TEST(Server, AnAnswerThatNeverComesEndsTheConnection) {
  TestServer server;
  server.server->Start();
  BlockingClient client = server.Connect();
  EXPECT_EQ(Ask(client, "one\nask\n", "one\n"), "one\n");
  server.source.Advance(ServerOptions{}.request_timeout + 1s);
  EXPECT_TRUE(Closed(client));
  EXPECT_EQ(server.server->counters().request_timeouts, 1u);
}

TEST(Server, AServerGoesDownWithARequestThatWaits) {
  TestServer server;
  server.server->Start();
  BlockingClient client = server.Connect();
  EXPECT_EQ(Ask(client, "one\nask\n", "one\n"), "one\n");
  EXPECT_FALSE(server.server->Drain(1ms));
  EXPECT_TRUE(Closed(client));
}

TEST(Server, AnswersEveryLoopsConnections) {
  TestServer server({.threads = 3});
  server.server->Start();
  std::vector<BlockingClient> clients;
  for (int i = 0; i < 24; ++i) clients.push_back(server.Connect());
  for (BlockingClient& client : clients) EXPECT_EQ(Ask(client, "hello\n", "hello\n"), "hello\n");
  EXPECT_EQ(server.server->counters().connections_open, 24u);
}

TEST(Server, ListensOnLocalhostAllInterfacesAndUnixSockets) {
  const std::string path = std::filesystem::temp_directory_path() /
                           ("headgate_server_test_" + std::to_string(::getpid()));
  TestServer server({.threads = 2}, "localhost:0");
  const Endpoint all = server.Listen(":0");
  const Endpoint local = server.Listen("unix:" + path);
  server.server->Start();
  for (const Endpoint& endpoint : {server.endpoint, all, local}) {
    BlockingClient client = server.Connect(endpoint);
    EXPECT_EQ(Ask(client, "hello\n", "hello\n"), "hello\n") << endpoint.ToString();
  }
  server.server.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Server, LeavesTheSocketFileOfItsSuccessor) {
  const std::string path = std::filesystem::temp_directory_path() /
                           ("headgate_successor_test_" + std::to_string(::getpid()));
  TestServer first({}, "unix:" + path);
  first.server->Start();
  std::filesystem::remove(path);
  TestServer second({}, "unix:" + path);
  second.server->Start();
  first.server.reset();
  BlockingClient client = second.Connect();
  EXPECT_EQ(Ask(client, "hello\n", "hello\n"), "hello\n");
}

TEST(Server, TakesOverASocketFileThatNobodyListensOn) {
  const std::string path = std::filesystem::temp_directory_path() /
                           ("headgate_stale_test_" + std::to_string(::getpid()));
  const Endpoint endpoint = *ParseEndpoint("unix:" + path);
  const int stale = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_storage storage{};
  storage.ss_family = AF_UNIX;
  path.copy(reinterpret_cast<char*>(&storage) + sizeof(sa_family_t), path.size());
  ASSERT_EQ(::bind(stale, reinterpret_cast<const sockaddr*>(&storage),
                   static_cast<socklen_t>(sizeof(sa_family_t) + path.size())),
            0);
  ::close(stale);
  TestServer server({}, "unix:" + path);
  server.server->Start();
  BlockingClient client = server.Connect();
  EXPECT_EQ(Ask(client, "hello\n", "hello\n"), "hello\n");
}

TEST(Server, RefusesAnAddressThatAnotherServerHas) {
  TestServer first({.threads = 2});
  base::DisciplinedClock clock{first.source};
  SpareFiles spare_files;
  Server second({.threads = 2}, clock, spare_files);
  const auto bound = second.Listen(first.endpoint, [](uint32_t) { return SessionChooser{}; });
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(bound.status().message()),
              ::testing::HasSubstr("cannot listen on " + first.endpoint.ToString()));
}

TEST(Server, TheFirstBytesChooseTheSessionOrTheRefusal) {
  TestServer server;
  server.server->Start();
  BlockingClient spoken = server.Connect();
  BlockingClient refused = server.Connect();
  BlockingClient other = server.Connect();
  ASSERT_TRUE(spoken.Send("?").ok());
  ASSERT_TRUE(refused.Send("?").ok());
  EXPECT_EQ(Ask(other, "hello\n", "hello\n"), "hello\n");
  EXPECT_EQ(Ask(spoken, "what\n", "?what\n"), "?what\n");
  ASSERT_TRUE(refused.Send("x").ok());
  EXPECT_EQ(*refused.ReadToEnd(1000), "no x here\n");
  EXPECT_EQ(server.server->counters().refused_protocol, 1u);
}

TEST(Server, DeliversTheLastWordsToAClientThatStillSends) {
  TestServer server;
  server.server->Start();
  BlockingClient client = server.Connect();
  ASSERT_TRUE(client.Send("nonsense\n" + std::string(100'000, 'x')).ok());
  EXPECT_EQ(ReadBytes(client, 6), "error\n");
  EXPECT_EQ(server.server->counters().protocol_errors, 1u);
}

TEST(Server, AnswersAClientThatHasFinishedSending) {
  TestServer server;
  server.server->Start();
  BlockingClient client = server.Connect();
  ASSERT_TRUE(client.Send("hello\n").ok());
  client.FinishSending();
  EXPECT_EQ(*client.ReadToEnd(1000), "hello\n");
}

TEST(Server, ClosesAConnectionThatIsIdleTooLong) {
  TestServer server({.idle_timeout = 60s});
  server.server->Start();
  BlockingClient client = server.Connect();
  EXPECT_EQ(Ask(client, "hello\n", "hello\n"), "hello\n");
  server.source.Advance(59s);
  EXPECT_EQ(Ask(client, "hello\n", "hello\n"), "hello\n");
  server.source.Advance(60s);
  EXPECT_EQ(*client.ReadToEnd(1000), "idle\n");
  EXPECT_EQ(server.server->counters().idle_timeouts, 1u);
}

TEST(Server, ClosesAConnectionWhoseRequestTakesTooLongEvenIfItTrickles) {
  TestServer server({.request_timeout = 10s});
  server.server->Start();
  BlockingClient client = server.Connect();
  EXPECT_EQ(Ask(client, "hello\nha", "hello\n"), "hello\n");
  server.source.Advance(6s);
  // The answer on another connection shows that the loop has read the partial line.
  ASSERT_TRUE(client.Send("lf").ok());
  BlockingClient other = server.Connect();
  EXPECT_EQ(Ask(other, "hello\n", "hello\n"), "hello\n");
  server.source.Advance(4s);
  EXPECT_EQ(*client.ReadToEnd(1000), "too slow\n");
  EXPECT_EQ(server.server->counters().request_timeouts, 1u);
}

TEST(Server, TimesTheFirstBytesBeforeTheSessionIsChosen) {
  TestServer server({.request_timeout = 10s});
  server.server->Start();
  BlockingClient client = server.Connect();
  ASSERT_TRUE(client.Send("?").ok());
  BlockingClient other = server.Connect();
  EXPECT_EQ(Ask(other, "hello\n", "hello\n"), "hello\n");
  server.source.Advance(10s);
  EXPECT_TRUE(Closed(client));
}

TEST(Server, WaitsForASlowReaderAndThenGoesOn) {
  TestServer server;
  server.server->Start();
  BlockingClient client = server.Connect();
  const size_t size = size_t{4} << 20;
  ASSERT_TRUE(client.Send("big\nnext\n").ok());
  const std::string answer = ReadBytes(client, size + 5);
  EXPECT_EQ(answer.size(), size + 5);
  EXPECT_EQ(answer.substr(size), "next\n");
  EXPECT_EQ(Ask(client, "hello\n", "hello\n"), "hello\n");
}

TEST(Server, ClosesAReaderThatDoesNotRead) {
  TestServer server({.write_timeout = 10s});
  server.server->Start();
  BlockingClient client = server.Connect();
  ASSERT_TRUE(client.Send("big\n").ok());
  // Part of the output is still unsent when the server stops writing. The client does not read, so
  // the write timeout passes.
  while (server.server->counters().bytes_written == 0) std::this_thread::yield();
  while (server.server->counters().write_timeouts == 0) {
    server.source.Advance(10s);
    std::this_thread::yield();
  }
  EXPECT_LT(ReadBytes(client, size_t{4} << 20).size(), size_t{4} << 20);
}

// The rest of the output waits in the server, where it counts against the bound for all
// connections.
TEST(Server, PutsLittleIntoTheSystemForAReaderThatDoesNotRead) {
  TestServer server;
  server.server->Start();
  std::vector<BlockingClient> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(server.Connect());
    ASSERT_TRUE(clients.back().Send("big\n").ok());
  }
  // Once nothing but the answer to another client is written, the system's buffers take no more of
  // the others.
  BlockingClient other = server.Connect();
  uint64_t taken = 0;
  do {
    taken = server.server->counters().bytes_written;
    EXPECT_EQ(Ask(other, "hello\n", "hello\n"), "hello\n");
  } while (server.server->counters().bytes_written > taken + 6);
  // The client's own buffer takes 64 KiB besides. Without a bound it is 2.5 MB for each.
  EXPECT_GT(taken, clients.size() * (size_t{32} << 10));
  EXPECT_LT(taken, clients.size() * (size_t{384} << 10));
}

TEST(Server, ClosesAConnectionWhoseAnswersAreTooLong) {
  TestServer server({.output_bytes_max = 1 << 20});
  server.server->Start();
  BlockingClient client = server.Connect();
  ASSERT_TRUE(client.Send("big\n").ok());
  EXPECT_TRUE(Closed(client));
  EXPECT_EQ(server.server->counters().buffer_overflows, 1u);
}

TEST(Server, ClosesAConnectionWhoseRequestIsTooLong) {
  TestServer server({.input_bytes_max = 64 * 1024});
  server.server->Start();
  BlockingClient client = server.Connect();
  EXPECT_EQ(Ask(client, "hello\n", "hello\n"), "hello\n");
  (void)client.Send(std::string(200'000, 'x'));
  EXPECT_TRUE(Closed(client));
  EXPECT_EQ(server.server->counters().buffer_overflows, 1u);
}

TEST(Server, RefusesConnectionsBeyondItsLimitsAndTakesThemAgainLater) {
  TestServer server({.connections_max = 10, .connections_per_address_max = 2});
  server.server->Start();
  auto first = std::make_unique<BlockingClient>(server.Connect());
  BlockingClient second = server.Connect();
  EXPECT_EQ(Ask(*first, "hello\n", "hello\n"), "hello\n");
  EXPECT_EQ(Ask(second, "hello\n", "hello\n"), "hello\n");
  BlockingClient third = server.Connect();
  EXPECT_EQ(*third.ReadToEnd(1000), "full house\n");
  EXPECT_EQ(server.server->counters().refused_address_limit, 1u);
  first.reset();
  while (server.server->counters().connections_open == 2) std::this_thread::yield();
  BlockingClient fourth = server.Connect();
  EXPECT_EQ(Ask(fourth, "hello\n", "hello\n"), "hello\n");
}

// Sockets that use up all file descriptors, and release them again.
class AllFiles {
 public:
  AllFiles() {
    // A lower limit is reached sooner.
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit few{.rlim_cur = 256, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) fds_.emplace_back(fd);
  }
  ~AllFiles() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_{};
  std::vector<FileDescriptor> fds_;
};

TEST(Server, WaitsForRoomWhereTheSystemHasNoneForAnotherConnection) {
  TestServer server;
  server.server->Start();
  BlockingClient open = server.Connect();
  EXPECT_EQ(Ask(open, "hello\n", "hello\n"), "hello\n");
  FileDescriptor waiting(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server.endpoint.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  {
    const AllFiles all_files;
    ASSERT_EQ(
        ::connect(waiting.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    while (server.server->counters().accept_errors == 0) std::this_thread::yield();
    EXPECT_EQ(Ask(open, "hello\n", "hello\n"), "hello\n");
    // The acceptor pauses between its attempts.
    EXPECT_LE(server.server->counters().accept_errors, 20u);
  }
  char answer[6];
  ASSERT_EQ(::send(waiting.get(), "hello\n", 6, 0), 6);
  EXPECT_EQ(::recv(waiting.get(), answer, sizeof(answer), MSG_WAITALL), 6);
}

TEST(Server, DrainsAtOnceWhereNobodyIsInTheMiddleOfARequest) {
  TestServer server({.threads = 2});
  server.server->Start();
  BlockingClient resting = server.Connect();
  EXPECT_EQ(Ask(resting, "hello\n", "hello\n"), "hello\n");
  BlockingClient silent = server.Connect();
  EXPECT_TRUE(server.server->Drain(10s));
  EXPECT_TRUE(Closed(resting));
  EXPECT_TRUE(Closed(silent));
  EXPECT_EQ(BlockingClient::Connect(server.endpoint, 1s).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(Server, FinishesRequestsThatHaveBegunBeforeItGoes) {
  TestServer server;
  server.server->Start();
  BlockingClient client = server.Connect();
  EXPECT_EQ(Ask(client, "hello\nha", "hello\n"), "hello\n");
  std::atomic<bool> drained{false};
  std::thread drain([&] { drained = server.server->Drain(10s); });
  // Connecting fails once draining has begun.
  while (BlockingClient::Connect(server.endpoint, 1s).ok()) std::this_thread::yield();
  ASSERT_TRUE(client.Send("lf\n").ok());
  EXPECT_EQ(*client.ReadToEnd(1000), "bye half\n");
  drain.join();
  EXPECT_TRUE(drained);
}

TEST(Server, CutsOffWhatDoesNotFinish) {
  TestServer server;
  server.server->Start();
  BlockingClient client = server.Connect();
  EXPECT_EQ(Ask(client, "hello\nha", "hello\n"), "hello\n");
  EXPECT_FALSE(server.server->Drain(10ms));
  EXPECT_TRUE(Closed(client));
  EXPECT_EQ(server.server->counters().drain_cutoffs, 1u);
}

TEST(Server, AnswersWhoWasWaitingInTheQueueWhenItBeganToDrain) {
  TestServer server;
  BlockingClient client = server.Connect();
  ASSERT_TRUE(client.Send("hello\n").ok());
  server.server->Start();
  EXPECT_TRUE(server.server->Drain(10s));
  EXPECT_THAT(*client.ReadToEnd(1000), ::testing::AnyOf("hello\n", "bye hello\n"));
}

TEST(Server, StopsWithConnectionsOpenInEveryState) {
  TestServer server({.threads = 2});
  server.server->Start();
  BlockingClient silent = server.Connect();
  BlockingClient half = server.Connect();
  BlockingClient slow = server.Connect();
  EXPECT_EQ(Ask(half, "hello\nha", "hello\n"), "hello\n");
  ASSERT_TRUE(slow.Send("big\n").ok());
  server.server.reset();
  EXPECT_TRUE(Closed(silent));
}

TEST(Server, SaysThatAFileIsInTheWayOfAUnixSocket) {
  const std::string path =
      ::testing::TempDir() + "headgate_server_test_file_" + std::to_string(::getpid());
  std::ofstream(path) << "precious";
  base::SystemClock source;
  base::DisciplinedClock clock{source};
  SpareFiles spare_files;
  Server server({}, clock, spare_files);
  const auto bound =
      server.Listen(*ParseEndpoint("unix:" + path), [](uint32_t) { return SessionChooser{}; });
  ASSERT_FALSE(bound.ok());
  EXPECT_THAT(std::string(bound.status().message()),
              ::testing::EndsWith("the file there is not a socket"));
  EXPECT_TRUE(std::remove(path.c_str()) == 0);
}

}  // namespace server_test
}  // namespace headgate::net
