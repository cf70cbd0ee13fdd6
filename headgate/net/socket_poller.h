// Tells the sockets of one event loop when they become readable or writable: an epoll set in which
// each socket is registered once.
//
// Connections are registered edge-triggered, so a request costs no system call to wait for the next
// one. Sources: epoll(7), "Level-triggered and edge-triggered"; eventfd(2); timerfd_create(2).
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <span>
#include <vector>

#include "headgate/base/monotonic_time.h"
#include "headgate/net/file_descriptor.h"

namespace headgate::net {

class SocketPoller {
 public:
  class Socket {
   public:
    // Events of epoll_ctl(2). May remove any socket.
    virtual void OnEvents(uint32_t events) = 0;

    bool called_again = false;  // for the poller: CallAgain is pending

   protected:
    ~Socket() = default;
  };

  // The events for which a socket is registered. Edge-triggered: input that the socket does not
  // read now is announced again only if more arrives, or after CallAgain or WhenWritable.
  // Level-triggered: input is announced in each turn until it is read.
  static constexpr uint32_t kInputOnce = EPOLLIN | EPOLLRDHUP | EPOLLET;
  static constexpr uint32_t kInputUntilRead = EPOLLIN;
  static constexpr uint32_t kOutputOnce = EPOLLOUT | EPOLLET;

  // Throws std::system_error if the system denies a descriptor.
  SocketPoller();
  SocketPoller(const SocketPoller&) = delete;

  // All functions but Wake are for the loop's thread only.

  // The peer's end and errors are announced as well. Returns false if the system has no room for
  // another registration. Remove the socket before closing `fd`.
  [[nodiscard]] bool Add(int fd, Socket& socket, uint32_t events = kInputOnce);
  void Remove(int fd, Socket& socket);
  // For a socket with kInputOnce: from now on also announces when `fd` can be written; at once if
  // it can be now.
  void WhenWritable(int fd, Socket& socket);
  // Announces EPOLLIN in the next turn, whatever the socket's state. Repeated calls before that
  // have no effect.
  void CallAgain(Socket& socket);

  // Announces the events that are ready. If there are none and it may wait, waits for one, or until
  // it is woken.
  void Poll(bool may_wait);
  // Callable from any thread: wakes the current or next Poll.
  void Wake();
  // Wakes the Poll at this time. Replaces the time set before.
  void WakeAt(base::MonotonicTime at);

 private:
  void WatchForWakes(int fd);
  // `again`: for CallAgain.
  void Call(std::span<epoll_event> batch, bool again);

  const FileDescriptor set_;
  const FileDescriptor wake_;
  const FileDescriptor alarm_;
  // In these lists, a removed socket leaves a null pointer.
  std::vector<epoll_event> polled_;
  std::vector<epoll_event> again_;  // for CallAgain
  std::vector<epoll_event> calling_again_;
  std::span<epoll_event> batch_;  // the announcements in progress
};

}  // namespace headgate::net
