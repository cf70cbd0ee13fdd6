// Calls back whenever a file descriptor is readable. For notifications of the system (signals,
// inotify), and for libraries with a descriptor of their own.
#pragma once

#include <functional>
#include <memory>

#include "headgate/net/event_loop.h"

namespace headgate::net {

class Readable final : private SocketPoller::Socket {
 public:
  // The caller keeps `fd`, which must stay open while this object exists. `call` runs on the loop's
  // thread and reads available data, and is called again while there is more; it may destroy this
  // object. Create and destroy this object on the loop's thread, or while the loop is not running.
  // Throws std::system_error if the system has no room for the registration.
  Readable(EventLoop& loop, int fd, std::function<void()> call);
  ~Readable();
  Readable(const Readable&) = delete;

 private:
  void OnEvents(uint32_t events) override;

  SocketPoller& poller_;
  const int fd_;
  const std::shared_ptr<const std::function<void()>> call_;
};

}  // namespace headgate::net
