// Calls whenever a file descriptor can be read: for what the system tells through one (signals,
// inotify), and for libraries that have a descriptor of their own.
#pragma once

#include <functional>
#include <memory>

#include "headgate/net/event_loop.h"

namespace headgate::net {

class Readable {
 public:
  // `fd` stays the caller's, and open until this goes. `call` runs on the loop's thread, and reads
  // what there is; it may destroy this. Make and destroy it on the loop's thread, or while nobody
  // runs the loop.
  Readable(EventLoop& loop, int fd, std::function<void()> call);
  ~Readable();
  Readable(const Readable&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace headgate::net
