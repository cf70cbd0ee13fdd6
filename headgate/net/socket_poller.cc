#include "headgate/net/socket_poller.h"

#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "headgate/base/check.h"

namespace headgate::net {
namespace {

// The bound keeps one turn short when thousands of sockets are ready.
constexpr int kEventsPerTurn = 256;

FileDescriptor Granted(int fd, const char* what) {
  if (fd < 0) throw std::system_error(errno, std::generic_category(), what);
  return FileDescriptor(fd);
}

epoll_event EventsFor(uint32_t events, SocketPoller::Socket* socket) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = socket;
  return event;
}

void Forget(std::span<epoll_event> events, const SocketPoller::Socket& socket) {
  for (epoll_event& event : events) {
    if (event.data.ptr == &socket) event.data.ptr = nullptr;
  }
}

}  // namespace

SocketPoller::SocketPoller()
    : set_(Granted(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      wake_(Granted(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")),
      alarm_(
          Granted(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd_create")),
      polled_(kEventsPerTurn) {
  WatchForWakes(wake_.get());
  WatchForWakes(alarm_.get());
}

// Edge-triggered, so that each wake ends one wait, and the descriptor need not be read.
void SocketPoller::WatchForWakes(int fd) {
  epoll_event woken = EventsFor(EPOLLIN | EPOLLET, nullptr);
  HEADGATE_CHECK(::epoll_ctl(set_.get(), EPOLL_CTL_ADD, fd, &woken) == 0);
}

bool SocketPoller::Add(int fd, Socket& socket, uint32_t events) {
  epoll_event event = EventsFor(events, &socket);
  return ::epoll_ctl(set_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void SocketPoller::Remove(int fd, Socket& socket) {
  ::epoll_ctl(set_.get(), EPOLL_CTL_DEL, fd, nullptr);
  Forget(batch_, socket);
  Forget(again_, socket);
  Forget(calling_again_, socket);
  socket.called_again = false;
}

// A change of the registration announces the current state.
void SocketPoller::WhenWritable(int fd, Socket& socket) {
  epoll_event event = EventsFor(kInputOnce | EPOLLOUT, &socket);
  ::epoll_ctl(set_.get(), EPOLL_CTL_MOD, fd, &event);
}

void SocketPoller::CallAgain(Socket& socket) {
  if (!std::exchange(socket.called_again, true)) again_.push_back(EventsFor(EPOLLIN, &socket));
}

void SocketPoller::Wake() {
  const uint64_t one = 1;
  // The write fails only after 2^64 - 2 wakes.
  (void)!::write(wake_.get(), &one, sizeof(one));
}

// A timer that lives in the set costs less than a wait with a timeout, for which the system makes a
// timer each time.
void SocketPoller::WakeAt(base::MonotonicTime at) {
  constexpr int64_t kNanosPerSecond = 1'000'000'000;
  // Zero would switch the timer off.
  const int64_t ns = std::max<int64_t>(1, at.ns);
  const itimerspec time{.it_interval = {},
                        .it_value = {ns / kNanosPerSecond, ns % kNanosPerSecond}};
  HEADGATE_CHECK(::timerfd_settime(alarm_.get(), TFD_TIMER_ABSTIME, &time, nullptr) == 0);
}

void SocketPoller::Poll(bool may_wait) {
  calling_again_.swap(again_);
  const int wait_ms = may_wait && calling_again_.empty() ? -1 : 0;
  const int count = ::epoll_wait(set_.get(), polled_.data(), kEventsPerTurn, wait_ms);
  HEADGATE_CHECK(count >= 0 || errno == EINTR);
  if (count > 0) Call(std::span(polled_).first(static_cast<size_t>(count)), /*again=*/false);
  Call(calling_again_, /*again=*/true);
  calling_again_.clear();
}

void SocketPoller::Call(std::span<epoll_event> batch, bool again) {
  batch_ = batch;
  for (const epoll_event& event : batch) {
    auto* const socket = static_cast<Socket*>(event.data.ptr);
    if (socket == nullptr) continue;
    if (again) socket->called_again = false;
    socket->OnEvents(event.events);
  }
  batch_ = {};
}

}  // namespace headgate::net
