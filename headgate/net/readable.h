// Calls back whenever a file descriptor is readable. For notifications of the system (signals,
// inotify), and for libraries with a descriptor of their own.
#pragma once

#include <functional>
#include <memory>

#include "headgate/net/event_loop.h"

namespace headgate::net {

class Readable {
 public:
  // The caller keeps `fd`, which must stay open while this object exists. `call` runs on the loop's
  // thread and reads the available data; it may destroy this object. Create and destroy this object
  // on the loop's thread, or while the loop is not running.
  Readable(EventLoop& loop, int fd, std::function<void()> call);
  ~Readable();
  Readable(const Readable&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace headgate::net
