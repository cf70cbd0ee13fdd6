// Streams to real sockets within this process.
#include "headgate/net/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "headgate/net/listen.h"

namespace headgate::net {
namespace stream_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// The listening end; accepts one connection when it is first used.
struct Peer {
  explicit Peer(const std::string& address = "127.0.0.1:0")
      : sockets(*ListenOn(*ParseEndpoint(address), 1, 16)) {}
  uint16_t port() const { return sockets.bound.port; }
  int fd() {
    if (!connection)
      connection =
          FileDescriptor(::accept4(sockets.by_loop[0][0].get(), nullptr, nullptr, SOCK_NONBLOCK));
    return connection.get();
  }
  // Reads the bytes that have arrived.
  std::string Read() {
    std::string all;
    std::string buffer(1 << 16, '\0');
    for (ssize_t n = 0; (n = ::recv(fd(), buffer.data(), buffer.size(), 0)) > 0;) {
      all.append(buffer, 0, static_cast<size_t>(n));
    }
    return all;
  }
  ListeningSockets sockets;
  FileDescriptor connection;
};

struct TestStream final : Stream::Owner {
  explicit TestStream(base::Duration timeout = 5s)
      : stream(loop, *this, {.connect_timeout = timeout}) {}
  void OnConnected() override { connected = true; }
  void OnBytes(std::string_view bytes) override {
    input += bytes;
    if (input.ends_with("close yourself")) stream.Close();
  }
  void OnClosed(const absl::Status& why) override { closed = std::string(why.message()); }
  bool OnInputEnd() override {
    input_ended = true;
    return stays_open;
  }
  void OnUnsent() override { unsent.push_back(stream.unsent_bytes()); }
  bool Until(const std::function<bool()>& done, base::Duration timeout = 10s) {
    return loop.RunUntil(done, timeout);
  }

  base::SystemClock clock;
  EventLoop loop{clock};
  bool connected = false;
  std::string input;
  std::string closed;
  bool stays_open = false;
  bool input_ended = false;
  std::vector<size_t> unsent;
  Stream stream;
};

TEST(Stream, CarriesBytesBothWays) {
  for (const char* host : {"127.0.0.1", "localhost"}) {
    Peer peer;
    TestStream test;
    test.stream.Connect({.host = host, .port = peer.port()});
    ASSERT_TRUE(test.Until([&] { return test.connected; })) << host << ": " << test.closed;
    test.stream.output() = "hello";
    test.stream.Flush();
    EXPECT_EQ(peer.Read(), "hello");
    ::send(peer.fd(), "world", 5, 0);
    EXPECT_TRUE(test.Until([&] { return test.input == "world"; }));
    EXPECT_EQ(test.stream.bytes_written(), 5u);
    EXPECT_EQ(test.stream.bytes_read(), 5u);
    peer.connection = FileDescriptor();
    EXPECT_TRUE(test.Until([&] { return !test.closed.empty(); }));
    EXPECT_THAT(test.closed, HasSubstr("the other end closed the connection"));
  }
}

TEST(Stream, ReadsNothingWhileItIsPaused) {
  Peer peer;
  TestStream test;
  test.stream.PauseReading();  // Connect resumes
  test.stream.Connect({.host = "127.0.0.1", .port = peer.port()});
  ASSERT_TRUE(test.Until([&] { return test.connected; }));
  test.stream.PauseReading();
  ::send(peer.fd(), "one", 3, 0);
  EXPECT_FALSE(test.Until([&] { return !test.input.empty(); }, 20ms));
  test.stream.ResumeReading();
  EXPECT_TRUE(test.Until([&] { return test.input == "one"; }));
  ::send(peer.fd(), "two", 3, 0);
  EXPECT_TRUE(test.Until([&] { return test.input == "onetwo"; }));
}

TEST(Stream, EachDirectionEndsOnItsOwn) {
  Peer peer;
  TestStream test;
  test.stays_open = true;
  test.stream.Connect({.host = "127.0.0.1", .port = peer.port()});
  ASSERT_TRUE(test.Until([&] { return test.connected; }));
  ::shutdown(peer.fd(), SHUT_WR);
  ASSERT_TRUE(test.Until([&] { return test.input_ended; }));
  test.stream.output() = "after the end";
  test.stream.FinishWriting();
  EXPECT_EQ(peer.Read(), "after the end");
  char byte = 0;
  EXPECT_EQ(::recv(peer.fd(), &byte, 1, 0), 0) << "its direction is closed too";
  EXPECT_EQ(test.closed, "");
}

TEST(Stream, NoticesAfterTheEndOfTheInputThatTheConnectionIsBroken) {
  Peer peer;
  TestStream test;
  test.stays_open = true;
  test.stream.Connect({.host = "127.0.0.1", .port = peer.port()});
  ASSERT_TRUE(test.Until([&] { return test.connected; }));
  ::shutdown(peer.fd(), SHUT_WR);
  ASSERT_TRUE(test.Until([&] { return test.input_ended; }));
  peer.connection = FileDescriptor();
  EXPECT_TRUE(test.Until([&] {
    test.stream.output() += "x";
    test.stream.Flush();
    return !test.closed.empty();
  }));
}

TEST(Stream, SaysHowMuchIsLeftToSend) {
  Peer peer;
  TestStream test;
  test.stream.Connect({.host = "127.0.0.1", .port = peer.port()});
  ASSERT_TRUE(test.Until([&] { return test.connected; }));
  constexpr size_t kLots = size_t{12} << 20;
  test.stream.output().assign(kLots, 'x');
  test.stream.FinishWriting();
  EXPECT_GT(test.stream.unsent_bytes(), 0u);
  size_t read = 0;
  EXPECT_TRUE(test.Until([&] {
    read += peer.Read().size();
    return read == kLots;
  }));
  ASSERT_FALSE(test.unsent.empty());
  EXPECT_TRUE(std::is_sorted(test.unsent.rbegin(), test.unsent.rend()));
  EXPECT_EQ(test.unsent.back(), 0u);
}

TEST(Stream, GoesToAUnixSocket) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("headgate_stream_" + std::to_string(::getpid()));
  Peer peer("unix:" + path);
  TestStream test;
  test.stream.Connect({.unix_path = path});
  EXPECT_TRUE(test.Until([&] { return test.connected; })) << test.closed;
  ::unlink(path.c_str());
}

// Both events are ready when the loop polls.
TEST(Stream, ADeadlineThatComesWithTheConnectionDoesNotEndIt) {
  for (int i = 0; i < 20; ++i) {
    Peer peer;
    TestStream test(base::Duration(1));
    test.stream.Connect({.host = "127.0.0.1", .port = peer.port()});
    ASSERT_TRUE(test.Until([&] { return test.connected || !test.closed.empty(); }));
    EXPECT_FALSE(test.Until([&] { return test.connected && !test.closed.empty(); }, 2ms));
  }
}

TEST(Stream, SaysWhatIsMissingWhereTheOtherEndDoesNotSpeakTls) {
  Peer peer;
  TestStream test;
  Stream stream(test.loop, test, {.tls = *TlsContext::Load({}), .connect_timeout = 20ms});
  stream.Connect({.host = "127.0.0.1", .port = peer.port()});
  EXPECT_TRUE(test.Until([&] { return !test.closed.empty(); }));
  EXPECT_THAT(test.closed, HasSubstr("does it speak TLS"));
}

TEST(Stream, SaysWhyThereIsNoConnection) {
  TestStream test;
  const uint16_t port = Peer().port();
  test.stream.Connect({.host = "127.0.0.1", .port = port});
  EXPECT_TRUE(test.Until([&] { return !test.closed.empty(); }));
  EXPECT_EQ(test.closed, "127.0.0.1:" + std::to_string(port) + ": Connection refused");
  EXPECT_FALSE(test.connected);
}

TEST(Stream, GivesUpInTime) {
  // Nothing accepts connections, and the queue is full.
  FileDescriptor full(::socket(AF_INET, SOCK_STREAM, 0));
  Peer peer;
  ASSERT_EQ(::listen(peer.sockets.by_loop[0][0].get(), 0), 0);
  TestStream first, second, third;
  for (TestStream* test : {&first, &second}) {
    test->stream.Connect({.host = "127.0.0.1", .port = peer.port()});
    test->Until([&] { return test->connected; }, 50ms);
  }
  TestStream late(30ms);
  late.stream.Connect({.host = "127.0.0.1", .port = peer.port()});
  EXPECT_TRUE(late.Until([&] { return !late.closed.empty(); }));
  EXPECT_THAT(late.closed, HasSubstr("no connection within 30 ms"));
}

TEST(Stream, KeepsWhatThePeerDoesNotTakeYetInOrder) {
  Peer peer;
  TestStream test;
  test.stream.Connect({.host = "127.0.0.1", .port = peer.port()});
  ASSERT_TRUE(test.Until([&] { return test.connected; }));
  std::string all;
  for (int i = 0; i < 40; ++i) {
    const std::string piece(1 << 20, static_cast<char>('a' + i % 26));
    all += piece;
    test.stream.output() += piece;
    test.stream.Flush();
  }
  EXPECT_GT(test.stream.unsent_bytes(), 0u);
  std::string got;
  EXPECT_TRUE(test.Until([&] {
    got += peer.Read();
    return got.size() >= all.size();
  }));
  EXPECT_EQ(got == all, true);
  EXPECT_EQ(test.stream.unsent_bytes(), 0u);
}

TEST(Stream, MayBeClosedFromItsCallsAndOpenedAgain) {
  Peer peer;
  TestStream test;
  test.stream.Connect({.host = "127.0.0.1", .port = peer.port()});
  ASSERT_TRUE(test.Until([&] { return test.connected; }));
  ::send(peer.fd(), "close yourself", 14, 0);
  EXPECT_TRUE(test.Until([&] { return !test.input.empty(); }));
  char byte = 0;
  EXPECT_TRUE(test.Until([&] { return ::recv(peer.fd(), &byte, 1, 0) == 0; }));
  EXPECT_EQ(test.closed, "") << "whoever closes knows";
  test.connected = false;
  test.stream.Connect({.host = "127.0.0.1", .port = peer.port()});
  EXPECT_TRUE(test.Until([&] { return test.connected; }));
}

TEST(TlsContext, NamesTheFileThatCannotBeUsed) {
  EXPECT_THAT(std::string(TlsContext::Load({.ca_file = "/nowhere/ca.pem"}).status().message()),
              HasSubstr("the CA file '/nowhere/ca.pem' cannot be used"));
  EXPECT_THAT(
      std::string(TlsContext::Load({.certificate_file = "/nowhere/c.pem"}).status().message()),
      HasSubstr("give both"));
}

TEST(TlsContext, SaysOfEachFileThatItCannotBeUsed) {
  const auto problems = ProblemsOfFiles({.ca_file = "/nowhere/ca.pem",
                                         .certificate_file = "/nowhere/c.pem",
                                         .key_file = "/nowhere/k.pem"});
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0].file, TlsProblem::File::kCa);
  EXPECT_EQ(problems[1].file, TlsProblem::File::kCertificate);
}

}  // namespace stream_test
}  // namespace headgate::net
