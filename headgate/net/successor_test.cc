// A server that leaves its sockets to a successor: no client finds its connection closed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "headgate/net/server.h"
#include "headgate/net/server_rig.h"

namespace headgate::net {
namespace successor_test {

using namespace std::chrono_literals;

// Answers each line with the same line, and says "bye" before it when the server leaves.
class LineSession final : public Session {
 public:
  Progress OnBytes(std::span<const char> input, std::string& output, base::Instant) override {
    const std::string_view text(input.data(), input.size());
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {.mid_request = !text.empty()};
    if (leaves_) output += "bye ";
    output += text.substr(0, end + 1);
    return {.consumed = end + 1, .answered = 1, .close = leaves_};
  }
  void OnDrain() override { leaves_ = true; }

 private:
  bool leaves_ = false;
};

struct LineProtocol {
  SessionChoice Choose(std::span<const char>, const Peer&, Room) {
    return {.made = true, .session = std::make_unique<LineSession>()};
  }
};

struct TestServer : ServerRig<LineProtocol> {
  explicit TestServer(ServerOptions server_options = {}, std::string_view address = "127.0.0.1:0")
      : ServerRig(server_options, {}, address) {}
};

std::string Ask(BlockingClient& client, std::string_view line, std::string_view answer) {
  EXPECT_TRUE(client.Send(line).ok());
  return ReadBytes(client, answer.size());
}

bool Closed(BlockingClient& client) {
  const auto rest = client.ReadSome();
  return rest.ok() ? rest->empty() : rest.status().code() == absl::StatusCode::kUnavailable;
}

ListenOptions TrustingThisMachine() {
  return {.proxies = {.networks = base::IpNetworkSet({*base::ParseIpNetwork("127.0.0.0/8")})}};
}

// A second server that accepts on the sockets of the first one, as in another process.
struct Successor : ServerRig<LineProtocol> {
  Successor(const TestServer& first, const Endpoint& at, size_t address, uint32_t threads)
      : ServerRig({.threads = threads}) {
    std::vector<FileDescriptor> sockets;
    for (const int socket : first.server->listening_sockets().at(address))
      sockets.emplace_back(::dup(socket));
    server->Adopt(at, std::move(sockets), [this](uint32_t) {
      return [this](std::span<const char> bytes, const Peer& peer, Room room) {
        return Choose(bytes, peer, room);
      };
    });
    endpoint = at;
    server->Start();
  }
};

TEST(ServerWithSuccessor, ClosesNoConnectionBeforeItsNextAnswer) {
  for (const uint32_t threads : {1u, 2u, 3u}) {
    TestServer first({.threads = 2}, "localhost:0");
    first.server->Start();
    std::optional<BlockingClient> idle = first.Connect();
    EXPECT_EQ(Ask(*idle, "hello\n", "hello\n"), "hello\n");
    Successor second(first, first.endpoint, 0, threads);
    std::thread leave([&] { EXPECT_TRUE(first.server->LeaveToSuccessor(10s)); });
    // It may be answered before the first server has begun to leave.
    std::string answer = "hello\n";
    while (answer == "hello\n") {
      EXPECT_TRUE(idle->Send("hello\n").ok());
      answer = ReadBytes(*idle, 1);
    }
    EXPECT_EQ(answer, "bye hello\n");
    EXPECT_TRUE(Closed(*idle));
    idle.reset();
    leave.join();
    std::vector<BlockingClient> clients;
    for (int i = 0; i < 24; ++i) clients.push_back(second.Connect());
    for (BlockingClient& client : clients) EXPECT_EQ(Ask(client, "hello\n", "hello\n"), "hello\n");
    EXPECT_EQ(second.server->counters().connections_open, 24u);
    EXPECT_EQ(first.server->counters().connections_accepted, 1u);
  }
}

// A connection that waits for its PROXY header is not yet one of a client.
TEST(ServerWithSuccessor, WaitsForAClientBehindAProxy) {
  for (const bool arrives : {false, true}) {
    TestServer first;
    const Endpoint proxied = first.Listen("127.0.0.1:0", TrustingThisMachine());
    first.server->Start();
    std::optional<BlockingClient> client = first.Connect(proxied);
    EXPECT_TRUE(client->Send("PROXY TCP4 ").ok());
    {
      // Once the server answers this one, it has accepted the other.
      BlockingClient later = first.Connect();
      EXPECT_EQ(Ask(later, "hello\n", "hello\n"), "hello\n");
    }
    if (!arrives) {
      EXPECT_FALSE(first.server->LeaveToSuccessor(100ms));
      continue;
    }
    std::thread leave([&] { EXPECT_TRUE(first.server->LeaveToSuccessor(10s)); });
    EXPECT_TRUE(client->Send("192.0.2.1 192.0.2.2 1 2\r\n").ok());
    std::string answer = "hello\n";
    while (answer == "hello\n") {
      EXPECT_TRUE(client->Send("hello\n").ok());
      answer = ReadBytes(*client, 1);
    }
    EXPECT_EQ(answer, "bye hello\n");
    client.reset();
    leave.join();
  }
}

TEST(ServerWithSuccessor, LeavesItWaitingConnectionsAndTheSocketFile) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("headgate_left_test_" + std::to_string(::getpid()));
  std::optional<TestServer> first(std::in_place, ServerOptions{}, "unix:" + path);
  // They wait, because the first server has not been started.
  BlockingClient waiting = first->Connect();
  Successor second(*first, first->endpoint, 0, 1);
  EXPECT_TRUE(first->server->LeaveToSuccessor(10s));
  first.reset();
  EXPECT_EQ(Ask(waiting, "hello\n", "hello\n"), "hello\n");
  BlockingClient later = second.Connect();
  EXPECT_EQ(Ask(later, "hello\n", "hello\n"), "hello\n");
  second.server.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(ServerWithSuccessor, KeepsIdleConnectionsOnlyUntilTheEndOfTheTime) {
  TestServer first;
  first.server->Start();
  BlockingClient idle = first.Connect();
  EXPECT_EQ(Ask(idle, "hello\n", "hello\n"), "hello\n");
  EXPECT_FALSE(first.server->LeaveToSuccessor(1ms));
  EXPECT_TRUE(Closed(idle));
}

}  // namespace successor_test
}  // namespace headgate::net
