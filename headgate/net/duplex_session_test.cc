// Duplex sessions over real sockets: they read and write independently of each other, each
// direction ends on its own, and a peer that takes nothing is cut off.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "headgate/net/server_rig.h"

namespace headgate::net {
namespace duplex_session_test {

using namespace std::chrono_literals;

constexpr size_t kLots = size_t{12} << 20;  // more than two sockets hold

// Each letter of the input names an output, which the session appends.
struct DuplexProtocol {
  SessionChoice Choose(std::span<const char>, const Peer&, Room);

  std::atomic<size_t> seen = 0;    // bytes of input
  std::atomic<size_t> unsent = 0;  // as last reported
  std::atomic<bool> input_ended = false;
  std::atomic<bool> speaks_at_drain = false;
};

class DuplexSession final : public Session {
 public:
  explicit DuplexSession(DuplexProtocol& protocol) : protocol_(protocol) {}

  bool duplex() const override { return true; }
  Progress OnBytes(std::span<const char> input, std::string& output, base::Instant now) override {
    protocol_.seen += input.size();
    for (const char letter : input) {
      if (letter == 'L') output.append(kLots, 'l');
      if (letter == 's') output += 's';
      if (letter == 'f') finishes_ = true;
      if (letter == 'c') closes_ = true;
      if (letter == 'r') resets_ = true;
      if (letter == 't') call_at_ = now + 2s;
    }
    if (call_at_ && now >= *call_at_) {
      output += "time";
      call_at_.reset();
    }
    if (std::exchange(last_words_, false)) {
      output += "bye";
      closes_ = true;
    }
    return {.consumed = input.size(),
            .close = closes_,
            .streaming = !protocol_.speaks_at_drain,
            .reset = resets_,
            .finish_writing = finishes_,
            .call_at = call_at_};
  }
  void OnUnsent(size_t bytes, base::Instant) override { protocol_.unsent = bytes; }
  void SetWaker(std::function<void()> wake) override { wake_ = std::move(wake); }
  void OnDrain() override {
    if (!protocol_.speaks_at_drain) return;
    last_words_ = true;
    wake_();
  }
  bool OnInputEnd(base::Instant) override {
    protocol_.input_ended = true;
    return last_words_ = !finishes_;
  }

 private:
  DuplexProtocol& protocol_;
  bool finishes_ = false;
  bool closes_ = false;
  bool resets_ = false;
  bool last_words_ = false;
  std::optional<base::Instant> call_at_;
  std::function<void()> wake_;
};

SessionChoice DuplexProtocol::Choose(std::span<const char>, const Peer&, Room) {
  return {.made = true, .session = std::make_unique<DuplexSession>(*this)};
}

struct DuplexServer : ServerRig<DuplexProtocol> {
  explicit DuplexServer(const ServerOptions& options = {}) : ServerRig(options) { server->Start(); }
  // Turns of the loop, until `done`.
  void Until(const std::function<bool()>& done) {
    for (int i = 0; i < 100'000 && !done(); ++i) OnLoop([] {});
    EXPECT_TRUE(done());
  }
};

TEST(DuplexSession, ReadsWhileThePeerDoesNot) {
  DuplexServer server;
  BlockingClient client = server.Connect();
  ASSERT_TRUE(client.Send("L").ok());
  server.Until([&] { return server.unsent > 0; });
  ASSERT_TRUE(client.Send(std::string(1000, 'x')).ok());
  server.Until([&] { return server.seen == 1001; });
  ASSERT_TRUE(client.Send("s").ok());
  const std::string all = ReadBytes(client, kLots + 1);
  EXPECT_EQ(all.size(), kLots + 1);
  EXPECT_EQ(all.find_first_not_of('l'), kLots) << "the order of the output is kept";
  server.Until([&] { return server.unsent == 0; });
}

TEST(DuplexSession, AnswersAfterThePeerHasClosedItsDirection) {
  DuplexServer server;
  BlockingClient client = server.Connect();
  ASSERT_TRUE(client.Send("s").ok());
  client.FinishSending();
  EXPECT_EQ(*client.ReadToEnd(100), "sbye");
}

TEST(DuplexSession, IsCalledAtItsTimeThoughNothingArrives) {
  DuplexServer server;
  BlockingClient client = server.Connect();
  ASSERT_TRUE(client.Send("ts").ok());
  EXPECT_EQ(ReadBytes(client, 1), "s");
  server.source.Advance(2s);
  EXPECT_EQ(ReadBytes(client, 4), "time");
}

TEST(DuplexSession, ReadsAfterItHasClosedItsDirection) {
  DuplexServer server;
  BlockingClient client = server.Connect();
  ASSERT_TRUE(client.Send("Lf").ok());
  server.Until([&] { return server.unsent > 0; });
  EXPECT_EQ(client.ReadToEnd(2 * kLots)->size(), kLots) << "everything, then the end";
  ASSERT_TRUE(client.Send("12345").ok());
  server.Until([&] { return server.seen == 7; });
  client.FinishSending();
  server.Until([&] { return server.input_ended.load(); });
  server.Until([&] { return server.server->counters().connections_open == 0; });
}

TEST(DuplexSession, ItsLastOutputIsSentBeforeTheConnectionCloses) {
  DuplexServer server;
  BlockingClient client = server.Connect();
  ASSERT_TRUE(client.Send("L").ok());
  server.Until([&] { return server.unsent > 0; });
  ASSERT_TRUE(client.Send("sc").ok());
  server.Until([&] { return server.seen == 3; });
  const std::string all = *client.ReadToEnd(2 * kLots);
  EXPECT_EQ(all.size(), kLots + 1);
  EXPECT_EQ(all.back(), 's');
}

TEST(DuplexSession, AResetIsNoEndForThePeer) {
  DuplexServer server;
  BlockingClient client = server.Connect();
  ASSERT_TRUE(client.Send("s").ok());
  EXPECT_EQ(ReadBytes(client, 1), "s");
  ASSERT_TRUE(client.Send("r").ok());
  EXPECT_FALSE(client.ReadSome().ok());
  server.Until([&] { return server.server->counters().connections_open == 0; });
}

TEST(DuplexSession, AResetDoesNotWaitForOutputThatIsUnsent) {
  DuplexServer server;
  BlockingClient client = server.Connect();
  ASSERT_TRUE(client.Send("L").ok());
  server.Until([&] { return server.unsent > 0; });
  ASSERT_TRUE(client.Send("sr").ok());
  server.Until([&] { return server.server->counters().connections_open == 0; });
  EXPECT_FALSE(client.ReadToEnd(2 * kLots).ok());
}

TEST(DuplexSession, APeerThatTakesNothingIsCutOff) {
  DuplexServer server({.write_timeout = 10s});
  BlockingClient client = server.Connect();
  ASSERT_TRUE(client.Send("L").ok());
  server.Until([&] { return server.unsent > 0; });
  // More input does not give it more time. The sockets may still fill up at first.
  for (int i = 0; i < 8; ++i) {
    server.source.Advance(4s);
    (void)client.Send("x");
    for (int turn = 0; turn < 100; ++turn) server.OnLoop([] {});
  }
  server.Until([&] { return server.server->counters().connections_open == 0; });
  EXPECT_EQ(server.server->counters().write_timeouts, 1u);
}

TEST(DuplexSession, OutputBeyondTheBoundClosesTheConnection) {
  DuplexServer server({.output_bytes_max = kLots + kLots / 2});
  BlockingClient client = server.Connect();
  ASSERT_TRUE(client.Send("L").ok());
  server.Until([&] { return server.unsent > kLots / 2; });
  ASSERT_TRUE(client.Send("L").ok());
  server.Until([&] { return server.server->counters().buffer_overflows == 1; });
}

TEST(DuplexSession, UnsentOutputIsSentBeforeTheServerStops) {
  DuplexServer server;
  BlockingClient client = server.Connect();
  ASSERT_TRUE(client.Send("L").ok());
  server.Until([&] { return server.unsent > 0; });
  std::string all;
  std::thread reader([&] { all = ReadBytes(client, kLots); });
  (void)server.server->Drain(1s);
  reader.join();
  EXPECT_EQ(all.size(), kLots);
}

// HTTP/2 does this with GOAWAY.
TEST(DuplexSession, AnIdleOneSpeaksBeforeTheServerStops) {
  DuplexServer server;
  server.speaks_at_drain = true;
  BlockingClient client = server.Connect();
  ASSERT_TRUE(client.Send("s").ok());
  EXPECT_EQ(ReadBytes(client, 1), "s");
  std::string rest;
  std::thread reader([&] { rest = client.ReadToEnd(100).value_or("an error"); });
  (void)server.server->Drain(1s);
  reader.join();
  EXPECT_EQ(rest, "bye");
}

}  // namespace duplex_session_test
}  // namespace headgate::net
