// Tells sockets of one event loop when they became readable or writable.
//
// Each socket is registered once, edge-triggered, in an epoll set of its own. Boost.Asio watches
// only the set, so a request costs no system call to wait for the next one. (Asio's own waits would
// make one each time.) Sources: epoll(7), "Level-triggered and edge-triggered".
#pragma once

#include <sys/epoll.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <span>
#include <vector>

#include "headgate/net/file_descriptor.h"

namespace headgate::net {

class SocketPoller {
 public:
  class Socket {
   public:
    // Events of epoll_ctl(2). Edge-triggered: what the socket does not use up now is announced
    // again only if more arrives, or after CallAgain or WhenWritable. May remove any socket.
    virtual void OnEvents(uint32_t events) = 0;

   protected:
    ~Socket() = default;
  };

  // Calls `after` behind each batch of events. `io` must outlive the poller. For the loop's thread
  // only.
  SocketPoller(boost::asio::io_context& io, std::function<void()> after);
  SocketPoller(const SocketPoller&) = delete;

  // Announces what can be read, and that the peer has finished writing or is gone. Returns false if
  // the system has no room for another registration. Remove the socket before closing `fd`.
  [[nodiscard]] bool Add(int fd, Socket& socket);
  void Remove(int fd, Socket& socket);
  // From now on also announces when `fd` can be written; at once if it can be now.
  void WhenWritable(int fd, Socket& socket);
  // Announces EPOLLIN in a later turn, whatever the socket's state.
  void CallAgain(Socket& socket);

  // Whether a batch of events is being handled, so that `after` will be called.
  bool calling() const { return !batch_.empty(); }

 private:
  void Wait();
  void Poll();
  void Call(std::span<epoll_event> batch);
  void CallTheWaiting();

  const std::function<void()> after_;
  boost::asio::posix::stream_descriptor set_;
  std::vector<epoll_event> polled_;
  std::vector<epoll_event> again_;  // for CallAgain
  std::vector<epoll_event> calling_again_;
  std::span<epoll_event> batch_;  // a removed socket leaves a null pointer in it
};

}  // namespace headgate::net
