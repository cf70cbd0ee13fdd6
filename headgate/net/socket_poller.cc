#include "headgate/net/socket_poller.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>

#include "headgate/base/check.h"

namespace headgate::net {
namespace {

// The bound keeps one turn short when thousands of sockets are ready.
constexpr size_t kEventsPerTurn = 256;
// Then timers and work of other threads have their turn.
constexpr int kTurnsInARow = 16;
constexpr uint32_t kInput = EPOLLIN | EPOLLRDHUP | EPOLLET;

FileDescriptor NewSet() {
  FileDescriptor set(::epoll_create1(EPOLL_CLOEXEC));
  HEADGATE_CHECK(set);
  return set;
}

epoll_event EventsFor(uint32_t events, SocketPoller::Socket& socket) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &socket;
  return event;
}

void Forget(std::span<epoll_event> events, const SocketPoller::Socket& socket) {
  for (epoll_event& event : events) {
    if (event.data.ptr == &socket) event.data.ptr = nullptr;
  }
}

}  // namespace

SocketPoller::SocketPoller(boost::asio::io_context& io, std::function<void()> after)
    : after_(std::move(after)), set_(io, NewSet().release()), polled_(kEventsPerTurn) {
  Wait();
}

bool SocketPoller::Add(int fd, Socket& socket) {
  epoll_event event = EventsFor(kInput, socket);
  return ::epoll_ctl(set_.native_handle(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void SocketPoller::Remove(int fd, Socket& socket) {
  ::epoll_ctl(set_.native_handle(), EPOLL_CTL_DEL, fd, nullptr);
  Forget(batch_, socket);
  Forget(again_, socket);
}

// A change of the registration announces the current state.
void SocketPoller::WhenWritable(int fd, Socket& socket) {
  epoll_event event = EventsFor(kInput | EPOLLOUT, socket);
  ::epoll_ctl(set_.native_handle(), EPOLL_CTL_MOD, fd, &event);
}

void SocketPoller::CallAgain(Socket& socket) {
  if (again_.empty()) boost::asio::post(set_.get_executor(), [this] { CallTheWaiting(); });
  again_.push_back(EventsFor(EPOLLIN, socket));
}

void SocketPoller::Wait() {
  set_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                  [this](const boost::system::error_code& error) {
                    if (!error) Poll();
                  });
}

// After a batch the set is asked again at once, because under load more sockets have become ready
// meanwhile. The way back through Asio would cost two more system calls.
void SocketPoller::Poll() {
  for (int turn = 0; turn < kTurnsInARow; ++turn) {
    const int count = ::epoll_wait(set_.native_handle(), polled_.data(), kEventsPerTurn, 0);
    HEADGATE_CHECK(count >= 0 || errno == EINTR);
    if (count <= 0) break;
    Call(std::span(polled_).first(static_cast<size_t>(count)));
  }
  Wait();
}

void SocketPoller::CallTheWaiting() {
  calling_again_.swap(again_);
  Call(calling_again_);
  calling_again_.clear();
}

void SocketPoller::Call(std::span<epoll_event> batch) {
  batch_ = batch;
  for (const epoll_event& event : batch) {
    if (event.data.ptr != nullptr) static_cast<Socket*>(event.data.ptr)->OnEvents(event.events);
  }
  batch_ = {};
  after_();
}

}  // namespace headgate::net
