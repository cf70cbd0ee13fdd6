#include "headgate/net/socket_poller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/net/event_loop.h"

namespace headgate::net {
namespace socket_poller_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// One end of a socket pair in the poller of a loop; the test holds the other end.
class Polled final : public SocketPoller::Socket {
 public:
  explicit Polled(EventLoop& loop) : poller_(loop.sockets()) {
    int fds[2];
    HEADGATE_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    own_ = FileDescriptor(fds[0]);
    other = FileDescriptor(fds[1]);
    EXPECT_TRUE(poller_.Add(own_.get(), *this));
  }
  ~Polled() { poller_.Remove(own_.get(), *this); }

  void Send(const std::string& bytes) const {
    ASSERT_EQ(::write(other.get(), bytes.data(), bytes.size()), std::ssize(bytes));
  }
  void WhenWritable() { poller_.WhenWritable(own_.get(), *this); }
  void CallAgain() { poller_.CallAgain(*this); }

  FileDescriptor other;
  std::vector<uint32_t> events;
  std::function<void()> then = [] {};

 private:
  void OnEvents(uint32_t announced) override {
    events.push_back(announced);
    const std::function<void()> copy = then;  // it may destroy this socket
    copy();
  }

  SocketPoller& poller_;
  FileDescriptor own_;
};

struct SocketPollerTest : ::testing::Test {
  // Runs two more turns, in which an event that must not happen would have happened.
  void Settle() {
    for (int turn = 0; turn < 2; ++turn) {
      bool turned = false;
      loop.Post([&] { turned = true; });
      ASSERT_TRUE(loop.RunUntil([&] { return turned; }, 10s));
    }
    EXPECT_FALSE(loop.RunUntil([] { return false; }, 5ms));
  }

  base::SystemClock clock;
  EventLoop loop{clock};
};

TEST_F(SocketPollerTest, AnnouncesInputOnceForEachArrival) {
  Polled socket(loop);
  Settle();
  EXPECT_THAT(socket.events, IsEmpty());
  socket.Send("a");
  Settle();
  EXPECT_THAT(socket.events, ElementsAre(EPOLLIN)) << "nobody has read it";
  socket.Send("b");
  Settle();
  EXPECT_THAT(socket.events, ElementsAre(EPOLLIN, EPOLLIN));
}

TEST_F(SocketPollerTest, AnnouncesTheEndOfTheInput) {
  Polled socket(loop);
  socket.Send("last");
  ASSERT_EQ(::shutdown(socket.other.get(), SHUT_WR), 0);
  Settle();
  EXPECT_THAT(socket.events, ElementsAre(EPOLLIN | EPOLLRDHUP));
}

TEST_F(SocketPollerTest, AnnouncesASocketThatCanBeWrittenOnlyIfAsked) {
  Polled socket(loop);
  Settle();
  EXPECT_THAT(socket.events, IsEmpty());
  socket.WhenWritable();
  Settle();
  EXPECT_THAT(socket.events, ElementsAre(EPOLLOUT));
}

TEST_F(SocketPollerTest, CallsAgainInALaterTurn) {
  Polled socket(loop);
  int calls_left = 3;
  bool within = false;
  socket.then = [&] {
    EXPECT_FALSE(std::exchange(within, true));
    if (--calls_left > 0) socket.CallAgain();
    within = false;
  };
  socket.Send("a");
  Settle();
  EXPECT_THAT(socket.events, ElementsAre(EPOLLIN, EPOLLIN, EPOLLIN));
}

// A client that sends without end must not be called more often with each turn.
TEST_F(SocketPollerTest, CallsASocketThatAlwaysHasInputABoundedNumberOfTimes) {
  Polled socket(loop);
  socket.then = [&] {
    socket.CallAgain();
    socket.CallAgain();
  };
  constexpr size_t kTurns = 100;
  for (size_t turn = 0; turn < kTurns; ++turn) {
    socket.Send("x");
    bool turned = false;
    loop.Post([&] { turned = true; });
    ASSERT_TRUE(loop.RunUntil([&] { return turned; }, 10s));
  }
  EXPECT_LE(socket.events.size(), 2 * kTurns) << "for its input, and because it asked";
}

// All are ready in one batch, and the first one that is called removes the others.
TEST_F(SocketPollerTest, ARemovedSocketIsNotCalled) {
  std::array<std::unique_ptr<Polled>, 3> sockets;
  int calls = 0;
  for (auto& socket : sockets) {
    socket = std::make_unique<Polled>(loop);
    socket->then = [&, self = socket.get()] {
      ++calls;
      for (auto& any : sockets) {
        if (any.get() != self) any.reset();
      }
    };
    socket->Send("x");
    socket->CallAgain();
  }
  Settle();
  EXPECT_EQ(calls, 2) << "the one that is left: for its input, and because it asked";
}

TEST_F(SocketPollerTest, ASocketMayRemoveItself) {
  auto socket = std::make_unique<Polled>(loop);
  int calls = 0;
  socket->then = [&] {
    ++calls;
    socket.reset();
  };
  socket->Send("x");
  socket->CallAgain();
  Settle();
  EXPECT_EQ(calls, 1);
}

// More sockets than one batch has room for.
TEST_F(SocketPollerTest, CallsAllOfACrowd) {
  std::vector<std::unique_ptr<Polled>> sockets;
  for (int i = 0; i < 400; ++i) sockets.push_back(std::make_unique<Polled>(loop));
  for (const auto& socket : sockets) socket->Send("x");
  Settle();
  for (const auto& socket : sockets) EXPECT_THAT(socket->events, ElementsAre(EPOLLIN));
}

TEST_F(SocketPollerTest, TheTurnEndsBehindTheWholeBatch) {
  Polled first(loop);
  Polled second(loop);
  std::vector<std::string> said;
  EventLoop::Hook end(loop, [&] { said.emplace_back("end"); });
  for (Polled* socket : {&first, &second}) {
    socket->then = [&] {
      said.emplace_back("called");
      loop.AtEndOfTurn(end);
    };
    socket->Send("x");
  }
  Settle();
  EXPECT_THAT(said, ElementsAre("called", "called", "end"));
}

TEST_F(SocketPollerTest, HasNoRoomForAFileThatCannotBePolled) {
  Polled socket(loop);
  EXPECT_FALSE(loop.sockets().Add(-1, socket));
}

}  // namespace socket_poller_test
}  // namespace headgate::net
