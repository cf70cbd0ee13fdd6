#include "headgate/app/sidecar_handover.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <thread>

#include "headgate/base/clock.h"
#include "headgate/net/socket_address.h"

namespace headgate::app {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

uint64_t NumberOf(int socket) {
  struct stat info {};
  EXPECT_EQ(::fstat(socket, &info), 0);
  return info.st_ino;
}

struct SidecarHandoverTest : testing::Test {
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
    auto opened =
        HandoverPoint::Open(path, std::move(addresses), loop,
                            {.state = [this] { return state; }, .leave = [this] { ++left; }});
    ASSERT_TRUE(opened.ok()) << opened.status();
    point = *std::move(opened);
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

  // The state that the new process gets for its word.
  absl::StatusOr<SidecarState> SayReady(Predecessor& found) {
    absl::StatusOr<SidecarState> received;
    WhileItRuns([&] { received = found.SayReady(); });
    return received;
  }

  std::string folder;
  std::string path;
  base::SystemClock clock;
  net::EventLoop loop{clock};
  std::vector<net::FileDescriptor> sockets;
  std::unique_ptr<HandoverPoint> point;
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
  // Sends these messages to the process that connects, and reads its word.
  const auto answer = [&](std::vector<std::string> messages) {
    return std::thread([&listener, messages = std::move(messages)] {
      const net::FileDescriptor peer(::accept(listener.get(), nullptr, nullptr));
      for (const std::string& message : messages)
        EXPECT_EQ(::send(peer.get(), message.data(), message.size(), MSG_NOSIGNAL),
                  std::ssize(message));
      std::array<char, 16> word{};
      (void)::recv(peer.get(), word.data(), word.size(), 0);
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
    EXPECT_THAT(std::string(second.status().message()), HasSubstr("has not handed over"));
  });
}

TEST_F(SidecarHandoverTest, ItsFileIsForItsUserAndGoesWithIt) {
  Open({});
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
  auto old = std::move(point);
  Open({});
  old.reset();
  EXPECT_TRUE(std::filesystem::exists(path)) << "the file of the successor";
  point.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(SidecarHandoverTest, APathThatCannotBeUsedIsAnError) {
  const auto nowhere = HandoverPoint::Open("/nowhere/point", {}, loop, {});
  EXPECT_THAT(std::string(nowhere.status().message()),
              HasSubstr("cannot listen on /nowhere/point"));
  const auto too_long = HandoverPoint::Open(std::string(200, 'a'), {}, loop, {});
  EXPECT_THAT(std::string(too_long.status().message()), HasSubstr("too long"));
}

}  // namespace
}  // namespace headgate::app
