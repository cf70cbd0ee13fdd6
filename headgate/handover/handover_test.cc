#include "headgate/handover/handover.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "headgate/base/clock.h"
#include "headgate/net/socket_address.h"

namespace headgate::handover {
namespace handover_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

uint64_t NumberOf(int socket) {
  struct stat info {};
  EXPECT_EQ(::fstat(socket, &info), 0);
  return info.st_ino;
}

struct SidecarHandoverTest : ::testing::Test {
  SidecarHandoverTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "headgate-handover-XXXXXX";
    folder = ::mkdtemp(pattern.data());
    path = folder + "/point";
  }
  ~SidecarHandoverTest() override { std::filesystem::remove_all(folder); }

  // An address with this many sockets.
  HandoverPoint::Address Make(const std::string& name, const std::string& bound, size_t count) {
    HandoverPoint::Address address{
        .name = name, .bound = *net::ParseEndpoint(bound), .sockets = {}};
    for (size_t i = 0; i < count; ++i) {
      sockets.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      address.sockets.push_back(sockets.back().get());
    }
    return address;
  }
  void Open(std::vector<HandoverPoint::Address> addresses) {
    auto opened = TryToOpen(std::move(addresses));
    ASSERT_TRUE(opened.ok()) << opened.status();
    point = *std::move(opened);
  }
  absl::StatusOr<std::unique_ptr<HandoverPoint>> TryToOpen(
      std::vector<HandoverPoint::Address> addresses = {},
      const std::optional<net::SocketFile>& before = std::nullopt) {
    return HandoverPoint::Open({.path = path,
                                .before = before,
                                .hello_timeout = hello_timeout,
                                .ready_timeout = ready_timeout},
                               std::move(addresses), loop, log,
                               {.state = [this] { return state; }, .leave = [this] { ++left; }});
  }
  // A process that connects and says nothing.
  net::FileDescriptor Silent() {
    net::FileDescriptor peer(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const net::SocketAddress address = net::UnixSocket(path);
    EXPECT_EQ(::connect(peer.get(), address.get(), address.size), 0);
    return peer;
  }
  // Runs `work`, the new process, on another thread while the old one runs here.
  template <typename Work>
  void WhileItRuns(const Work& work) {
    std::atomic<bool> done = false;
    std::thread other([&] {
      work();
      done = true;
      loop.Post([] {});
    });
    EXPECT_TRUE(loop.RunUntil([&] { return done.load(); }, 10s));
    other.join();
  }
  std::optional<Predecessor> Find() {
    std::optional<Predecessor> found;
    WhileItRuns([&] {
      auto result = Predecessor::Find(path, 10s);
      EXPECT_TRUE(result.ok()) << result.status();
      if (result.ok()) found = *std::move(result);
    });
    return found;
  }

  // The new process says that it is ready. Returns the state that the old one sends in reply.
  absl::StatusOr<SidecarState> SayReady(Predecessor& found) {
    absl::StatusOr<SidecarState> received;
    WhileItRuns([&] { received = found.SayReady(); });
    return received;
  }

  std::string folder;
  std::string path;
  base::SystemClock clock;
  net::EventLoop loop{clock};
  std::ostringstream text;
  observe::Log log{{}, clock, std::make_shared<spdlog::sinks::ostream_sink_mt>(text)};
  std::vector<net::FileDescriptor> sockets;
  std::unique_ptr<HandoverPoint> point;
  // Long enough that they never pass, except in tests of the timeouts.
  base::Duration hello_timeout = 100s;
  base::Duration ready_timeout = 100s;
  SidecarState state;
  int left = 0;
};

TEST_F(SidecarHandoverTest, WithoutAProcessThereIsNothing) {
  EXPECT_FALSE(Find().has_value());
  // A socket on which nobody listens any more.
  Open({});
  std::filesystem::rename(path, path + "2");
  point.reset();
  std::filesystem::rename(path + "2", path);
  EXPECT_FALSE(Find().has_value());
}

TEST_F(SidecarHandoverTest, SocketsArriveInTheirOrder) {
  // More than fit into one message.
  Open({Make("listen 127.0.0.1:0", "127.0.0.1:8080", 300), Make("admin :0", ":9000", 1)});
  auto found = Find();
  ASSERT_TRUE(found.has_value());
  EXPECT_FALSE(found->Take("listen :0").has_value());
  const auto listen = found->Take("listen 127.0.0.1:0");
  ASSERT_TRUE(listen.has_value());
  EXPECT_EQ(listen->bound.ToString(), "127.0.0.1:8080");
  ASSERT_EQ(listen->sockets.size(), 300u);
  for (size_t i = 0; i < 300; ++i)
    EXPECT_EQ(NumberOf(listen->sockets[i].get()), NumberOf(sockets[i].get())) << i;
  EXPECT_FALSE(found->Take("listen 127.0.0.1:0").has_value()) << "it was taken";
  EXPECT_EQ(found->Take("admin :0")->sockets.size(), 1u);
  EXPECT_EQ(left, 0);
  EXPECT_TRUE(SayReady(*found).ok());
  EXPECT_EQ(left, 1);
}

TEST_F(SidecarHandoverTest, TheStateIsThatOfTheMomentWhenTheSuccessorIsReady) {
  Open({});
  auto found = Find();
  ASSERT_TRUE(found.has_value());
  state.mode = {.now = share::Mode::kPassthrough, .flag = share::Mode::kEnforce};
  state.pool = {.at = base::Instant::FromNanos(7), .shares = std::string(1 << 20, '\0')};
  const auto received = SayReady(*found);
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_EQ(*received, state);
}

// Another program at the path, or another version.
TEST_F(SidecarHandoverTest, AProcessThatSendsSomethingElseIsAnError) {
  const net::FileDescriptor listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const net::SocketAddress address = net::UnixSocket(path);
  ASSERT_EQ(::bind(listener.get(), address.get(), address.size), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  // Sends these messages to the process that connects, and reads its messages until it closes.
  const auto answer = [&](std::vector<std::string> messages) {
    return std::thread([&listener, messages = std::move(messages)] {
      const net::FileDescriptor peer(::accept(listener.get(), nullptr, nullptr));
      for (const std::string& message : messages)
        EXPECT_EQ(::send(peer.get(), message.data(), message.size(), MSG_NOSIGNAL),
                  std::ssize(message));
      std::array<char, 16> word{};
      // The new process sends its hello, and "ready" if it gets as far.
      while (::recv(peer.get(), word.data(), word.size(), 0) > 0) {
      }
    });
  };
  for (const auto* message : {"nonsense", "listen\n", "listen\n127.0.0.1", "listen\n:99999"}) {
    std::thread other = answer({message});
    EXPECT_TRUE(absl::IsInvalidArgument(Predecessor::Find(path, 10s).status())) << message;
    other.join();
  }
  for (const auto* message : {"state", "left"}) {
    std::thread other = answer({"end", message});
    auto found = Predecessor::Find(path, 10s);
    ASSERT_TRUE(found.ok() && found->has_value());
    EXPECT_FALSE((*found)->SayReady().ok()) << message;
    found->reset();
    other.join();
  }
}

TEST_F(SidecarHandoverTest, TwoAddressesMayHaveTheSameName) {
  Open(
      {Make("listen 127.0.0.1:0", "127.0.0.1:1", 2), Make("listen 127.0.0.1:0", "127.0.0.1:2", 1)});
  auto found = Find();
  ASSERT_TRUE(found.has_value());
  const auto first = found->Take("listen 127.0.0.1:0");
  const auto second = found->Take("listen 127.0.0.1:0");
  EXPECT_EQ(first->bound.port, 1);
  EXPECT_EQ(first->sockets.size(), 2u);
  EXPECT_EQ(second->bound.port, 2);
  EXPECT_EQ(second->sockets.size(), 1u);
}

TEST_F(SidecarHandoverTest, ASuccessorThatEndsLeavesTheProcessAlone) {
  Open({Make("admin :0", ":9000", 1)});
  EXPECT_TRUE(Find().has_value());  // and ends
  auto second = Find();
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(left, 0);
  EXPECT_TRUE(SayReady(*second).ok());
  EXPECT_EQ(left, 1);
}

TEST_F(SidecarHandoverTest, OneSuccessorAtATime) {
  Open({Make("admin :0", ":9000", 1)});
  const auto first = Find();
  ASSERT_TRUE(first.has_value());
  WhileItRuns([&] {
    const auto second = Predecessor::Find(path, 10s);
    EXPECT_TRUE(absl::IsAborted(second.status())) << second.status();
    EXPECT_THAT(std::string(second.status().message()),
                HasSubstr("taking over already: " + std::to_string(::getpid())));
  });
  EXPECT_TRUE(first->StillWaits().ok());
}

TEST_F(SidecarHandoverTest, SilentProcessesHoldUpNobody) {
  Open({Make("admin :0", ":9000", 1)});
  // More connections than the process keeps at a time.
  std::vector<net::FileDescriptor> silent;
  WhileItRuns([&] {
    for (int i = 0; i < 40; ++i) silent.push_back(Silent());
  });
  auto found = Find();
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(SayReady(*found).ok());
  EXPECT_EQ(left, 1);
}

TEST_F(SidecarHandoverTest, ASilentProcessIsDroppedAndLogged) {
  hello_timeout = 10ms;
  Open({});
  const net::FileDescriptor silent = Silent();
  std::array<char, 16> word{};
  WhileItRuns([&] { EXPECT_EQ(::recv(silent.get(), word.data(), word.size(), 0), 0); });
  EXPECT_THAT(text.str(),
              AllOf(HasSubstr("handover.peer_dropped process=" + std::to_string(::getpid())),
                    HasSubstr("after=0.01s"), HasSubstr("said nothing")));
  EXPECT_EQ(left, 0);
}

TEST_F(SidecarHandoverTest, ASuccessorThatIsNotReadyInTimeIsTold) {
  ready_timeout = 50ms;
  Open({Make("admin :0", ":9000", 1)});
  auto found = Find();
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(loop.RunUntil([&] { return !text.str().empty(); }, 60s));
  EXPECT_THAT(text.str(), AllOf(HasSubstr("handover.peer_dropped"), HasSubstr("after=0.05s"),
                                HasSubstr("was not ready")));
  EXPECT_TRUE(absl::IsDeadlineExceeded(found->StillWaits()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(found->SayReady().status()));
  EXPECT_EQ(left, 0);
  EXPECT_TRUE(Find().has_value()) << "another one may take over";
}

TEST_F(SidecarHandoverTest, ItsFileIsForItsUserAndGoesWithIt) {
  Open({});
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
  auto found = Find();
  ASSERT_TRUE(found.has_value());
  auto next = TryToOpen({}, found->file());
  ASSERT_TRUE(next.ok()) << next.status();
  point.reset();
  EXPECT_TRUE(std::filesystem::exists(path)) << "the file of the successor";
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
  *next = nullptr;
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(SidecarHandoverTest, AFileThatIsNotItsSocketStays) {
  const auto refused = [&] {
    const net::SocketFile before(path);
    EXPECT_TRUE(absl::IsAlreadyExists(Predecessor::Find(path, 10s).status()));
    const auto opened = TryToOpen();
    EXPECT_TRUE(absl::IsAlreadyExists(opened.status())) << opened.status();
    EXPECT_TRUE(before.IsThere());
    EXPECT_FALSE(std::filesystem::exists(path + ".new"));
    std::filesystem::remove(path);
  };
  std::ofstream(folder + "/target") << "precious";
  std::filesystem::copy(folder + "/target", path);
  refused();
  std::filesystem::create_symlink(folder + "/target", path);
  refused();
  std::filesystem::create_directory(path);
  refused();
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  refused();
  // The socket of another program, which nobody may miss.
  const auto stream = net::ListenOnUnix(path, {.backlog = 1});
  ASSERT_TRUE(stream.ok());
  refused();
  EXPECT_EQ(std::filesystem::file_size(folder + "/target"), 8u);
}

TEST_F(SidecarHandoverTest, ASocketOfAnotherUserStays) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  Open({});
  std::filesystem::rename(path, path + "2");
  point.reset();
  std::filesystem::rename(path + "2", path);
  ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(Predecessor::Find(path, 10s).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(TryToOpen().status()));
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(SidecarHandoverTest, AFileBesideItStaysToo) {
  Open({});
  auto found = Find();
  ASSERT_TRUE(found.has_value());
  std::ofstream(path + ".new") << "precious";
  EXPECT_TRUE(absl::IsAlreadyExists(TryToOpen({}, found->file()).status()));
  EXPECT_EQ(std::filesystem::file_size(path + ".new"), 8u);
  EXPECT_TRUE(SayReady(*found).ok()) << "the one that runs still waits";
}

TEST_F(SidecarHandoverTest, AnotherFileInPlaceOfThePredecessorsStays) {
  Open({});
  auto found = Find();
  ASSERT_TRUE(found.has_value());
  std::filesystem::remove(path);
  std::ofstream(path) << "precious";
  EXPECT_TRUE(absl::IsAlreadyExists(TryToOpen({}, found->file()).status()));
  point.reset();
  EXPECT_EQ(std::filesystem::file_size(path), 8u);
}

TEST_F(SidecarHandoverTest, APathThatCannotBeUsedIsAnError) {
  path = "/nowhere/point";
  EXPECT_THAT(std::string(TryToOpen().status().message()),
              HasSubstr("cannot listen on unix:/nowhere/point"));
  path = std::string(200, 'a');
  EXPECT_THAT(std::string(TryToOpen().status().message()), HasSubstr("too long"));
}

}  // namespace handover_test
}  // namespace headgate::handover
