#include "headgate/net/blocking_client.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <thread>

#include "headgate/net/listen.h"

namespace headgate::net {
namespace blocking_client_test {

using namespace std::chrono_literals;

// Sends to its first client until that client leaves.
class EndlessServer {
 public:
  EndlessServer()
      : sockets_(*ListenOn(*ParseEndpoint("127.0.0.1:0"), 1, 8, std::nullopt)),
        thread_([this] { Run(); }) {}
  ~EndlessServer() { thread_.join(); }

  const Endpoint& endpoint() const { return sockets_.bound; }

 private:
  void Run() const {
    const int listening = sockets_.by_loop[0][0].get();
    pollfd ready{.fd = listening, .events = POLLIN, .revents = 0};
    ::poll(&ready, 1, -1);
    const FileDescriptor client(::accept(listening, nullptr, nullptr));
    while (::send(client.get(), "x", 1, MSG_NOSIGNAL) == 1) {
    }
  }

  ListeningSockets sockets_;
  std::thread thread_;
};

TEST(BlockingClient, AServerThatNeverEndsItsAnswerCannotHoldAnExchange) {
  const EndlessServer server;
  auto client = BlockingClient::ConnectForOneExchange(server.endpoint(), 100ms);
  ASSERT_TRUE(client.ok()) << client.status();
  absl::StatusOr<std::string> bytes = client->ReadSome();
  while (bytes.ok() && !bytes->empty()) bytes = client->ReadSome();
  EXPECT_EQ(bytes.status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(BlockingClient, WaitsForASilentServerOnlySoLong) {
  const auto silent = ListenOn(*ParseEndpoint("127.0.0.1:0"), 1, 8, std::nullopt);
  ASSERT_TRUE(silent.ok()) << silent.status();
  auto client = BlockingClient::ConnectForOneExchange(silent->bound, 50ms);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ(client->ReadSome().status().code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace blocking_client_test
}  // namespace headgate::net
